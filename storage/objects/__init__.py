"""Where documents lie: S3 and folders behind one port (``docmill.ports.ObjectStore``)."""
