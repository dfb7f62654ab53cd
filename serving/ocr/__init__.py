"""Reading a page's text, marks and ruled tables on a CPU."""
