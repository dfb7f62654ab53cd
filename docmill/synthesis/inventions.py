"""Invented people, firms, places and things. None of them exists; any likeness is chance."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal

FIRST_NAMES = ("Amberly", "Bartok", "Celandine", "Dovrin", "Elspetha", "Fennimore", "Gudrella", "Hobart", "Isolwyn",
               "Jorvik", "Kestrina", "Lorcan", "Maribeth", "Nokomis", "Ottoline", "Perrin", "Quillon", "Rosamel",
               "Sorrel", "Thistan", "Ursa", "Vandrel", "Wilhelma", "Yarrow", "Zebulon")  # fmt: skip
FAMILY_NAMES = ("Appleforth", "Brindlewick", "Crumhorn", "Dapplemere", "Eiderstone", "Fennelbrook", "Gossamer",
                "Hazelthorpe", "Inkersole", "Juniper", "Kettlewright", "Larkmoor", "Mosswater", "Nettleship",
                "Oxbarrow", "Pennywhistle", "Quinceford", "Rushlight", "Saltmarsh", "Thornapple", "Umberfield",
                "Violetdale", "Wickerby", "Yellowhammer")  # fmt: skip
SHOPS = ("QUILLWORTH BAKERY", "MOSSGATE HARDWARE", "THE BRASS KETTLE CAFE", "DAPPLE & DAUGHTERS GROCERS",
         "LANTERN STREET BOOKS", "SALTMARSH FISH BAR", "FENNEL & FIG DELI", "COPPERBELL PHARMACY",
         "WILLOWHAM GARDEN CENTRE", "NINE OWLS STATIONERS", "THE CROOKED SPOON", "PUFFIN ROW MINIMART")  # fmt: skip
FIRMS = ("Brindle & Fenwick Stationers Ltd", "Umberfield Machine Works GmbH", "Halcyon Lamp Company",
         "Tern & Tide Logistics Ltd", "Pennywhistle Audio Labs", "Greycoat Paper Mill Ltd", "Larkmoor Office Supplies",
         "Nettleship Engineering Ltd", "Quince Hollow Print House", "Marrowbone Catering Services",
         "Seven Acre Timber Ltd", "Eiderstone Cleaning Services")  # fmt: skip
STREETS = ("Lantern Street", "Heron Quay", "Foxglove Lane", "Clockmaker Row", "Millrace Road", "Tinker's Yard",
           "Old Ferry Road", "Plum Tree Avenue", "Beacon Hill", "Harbour Parade")  # fmt: skip
TOWNS = ("Harrowmere", "Little Dapple", "Quince Hollow", "Port Ember", "Willowham", "Stonequay", "Upper Thrushby",
         "Merrowick", "Cindervale", "Eastlight")  # fmt: skip
COUNTRIES = ("Albrovia", "Merrowland", "Norvania", "Ostmark Isles")
GOODS = (("Sourdough loaf", "3.80"), ("Oat biscuits", "2.45"), ("Heather honey 340g", "6.90"),
         ("Green tea 20s", "3.15"),
         ("Beeswax candle", "4.60"), ("Garden twine 50m", "5.25"), ("Tomato soup", "1.95"), ("Apple juice 1L", "2.70"),
         ("Cheddar mature", "5.40"), ("Brass hinge pair", "7.85"), ("Notebook A5", "4.20"), ("Ink bottle blue", "9.50"),
         ("Paper napkins", "1.60"), ("Butter 250g", "2.95"), ("Flat white", "3.40"), ("Lemon tart", "4.75"),
         ("Mushroom pie", "6.20"), ("Batteries AA x4", "5.99"), ("Dish soap", "2.30"),
         ("Potting soil 10L", "6.45"))  # fmt: skip
WARES = (("PX-1040", "Copier paper A4, 80 g", "box", "24.90"), ("LM-2207", "Desk lamp, adjustable", "pcs", "48.50"),
         ("ST-0311", "Stapler, heavy duty", "pcs", "17.25"), ("EN-0090", "Envelopes C5, white", "pack", "8.60"),
         ("CH-5512", "Task chair, grey", "pcs", "189.00"), ("TN-7703", "Toner cartridge, black", "pcs", "72.40"),
         ("FL-1200", "Lever arch files", "pack", "13.75"), ("WB-0900", "Whiteboard 90 x 60 cm", "pcs", "64.00"),
         ("CB-3301", "Network cable 5 m", "pcs", "6.95"), ("SV-0001", "Installation on site", "hour", "55.00"),
         ("SV-0004", "Yearly maintenance", "year", "320.00"), ("DL-0002", "Pallet delivery", "trip", "38.00"),
         ("BX-0450", "Archive boxes", "pack", "21.30"), ("PN-2600", "Gel pens, blue", "box", "11.40"))  # fmt: skip
JOBS = ("Bookbinder", "Carpenter", "Data clerk", "Florist", "Gardener", "Lab assistant", "Librarian", "Machinist",
        "Nurse", "Surveyor", "Teacher", "Warehouse lead")  # fmt: skip
CENT = Decimal("0.01")


def person(rng: random.Random) -> str:
    """A full name."""
    return f"{rng.choice(FIRST_NAMES)} {rng.choice(FAMILY_NAMES)}"


def street(rng: random.Random) -> str:
    """House number and street."""
    return f"{rng.randint(1, 240)} {rng.choice(STREETS)}"


def postcode(rng: random.Random) -> str:
    """Five digits, the first of them never 0."""
    return str(rng.randint(10000, 99999))


def phone(rng: random.Random) -> str:
    """A number out of the range that is kept for fiction (555-01xx)."""
    return f"{rng.randint(201, 989)}-555-01{rng.randint(0, 99):02d}"


def day(rng: random.Random, first: date = date(2023, 1, 2), last: date = date(2026, 9, 30)) -> date:
    """A day between two days."""
    return first + timedelta(days=rng.randint(0, (last - first).days))


def number(seed: int, digits: int = 6) -> str:
    """A number of ``digits`` digits that no other seed below 10**digits gives."""
    return f"{(seed * 79_193 + 40_507) % 10**digits:0{digits}d}"


def money(amount: Decimal) -> str:
    """With two decimals and commas between the thousands."""
    return f"{amount:,.2f}"


def cents(amount: Decimal) -> Decimal:
    """Rounded half up to cents."""
    return amount.quantize(CENT, ROUND_HALF_UP)


def priced(rng: random.Random, list_price: str) -> Decimal:
    """A price somewhat off the list price."""
    return cents(Decimal(list_price) * Decimal(rng.randint(85, 130)) / 100)


def written_day(rng: random.Random, when: date) -> str:
    """A date in one of the ways that receipts and invoices print it, day before month."""
    way = rng.choice(("%d/%m/%Y", "%d-%m-%Y", "%d %b %Y", "%Y-%m-%d", "%d.%m.%Y"))
    return when.strftime(way)
