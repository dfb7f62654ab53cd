"""Fields out of read text: labels, geometry, totals, headings, tables, check boxes and key-value pairs."""
