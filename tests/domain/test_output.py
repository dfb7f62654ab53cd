"""What is printed."""

from console.output import printable


def test_names_cannot_steer_a_terminal():
    assert printable("\x1b[31mred\u202e.jpg\t") == "\\u001b[31mred\\u202e.jpg\\u0009"
    assert printable("发票 a b\nc") == "发票 a b\nc"
