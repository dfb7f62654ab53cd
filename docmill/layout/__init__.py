"""Geometry of a page: straightening, reading order, marks and ruled tables. Pure: pictures in, values out."""
