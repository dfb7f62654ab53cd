"""Receipts of many kinds of shops, all invented: what is read as company, address, date and total."""

from datetime import date
from decimal import Decimal

import pytest

from docmill.document_types import load_document_type
from docmill.extraction import PageText
from docmill.finding.extractor import find_fields

RECEIPT = load_document_type("receipt")
CHAR = 0.0145
STEP = 0.019


def printed(blank, text: str) -> PageText:
    """A receipt: lines that start with ``^`` are centred, ``|`` parts columns, the last one ends at the right edge."""
    page = blank()
    for number, line in enumerate(text.strip("\n").split("\n")):
        y = 0.03 + number * STEP
        if line.startswith("^"):
            body = line[1:].strip()
            page.text(max(0.5 - len(body) * CHAR / 2, 0.02), y, body)
            continue
        columns = [c.strip() for c in line.split("|")]
        for at, body in enumerate(columns):
            last = at == len(columns) - 1
            x = 0.05 if at == 0 else 0.95 - len(body) * 0.011 if last else 0.05 + 0.9 * at / len(columns)
            if body:
                page.text(x, y, body)
    return page.read()


KINDS = {
    "malaysian company with (M) before its form": (
        """
^SERI MELUR STATIONERY (M) SDN BHD
^(Co. Reg. No. 284417-K)
^NO 7, JALAN KENANGA 2/9,
^TAMAN KENANGA INDAH,
^47300 PETALING JAYA, SELANGOR.
^GST ID : 000447182293
^TEL : 03-7784 2291  FAX : 03-7784 2292
^TAX INVOICE
Invoice No : SM-118827 | Date : 15/03/2018
Cashier : AINI | Time : 15:42:10
Description | Qty | Price | Amount
A4 LEVER FILE | 2 | 6.50 | 13.00 SR
PEN BLUE 0.7 | 3 | 1.90 | 5.70 SR
Total (Excl. GST) | 17.64
GST @ 6% | 1.06
Rounding Adj | 0.00
Total (Incl. GST) | 18.70
CASH | 20.00
CHANGE | 1.30
GST Summary | Amount (RM) | Tax (RM)
SR @ 6% | 17.64 | 1.06
""",
        "SERI MELUR STATIONERY (M) SDN BHD",
        "NO 7, JALAN KENANGA 2/9, TAMAN KENANGA INDAH, 47300 PETALING JAYA, SELANGOR.",
        date(2018, 3, 15),
        "18.70",
    ),
    "restaurant without a company's form": (
        """
^WARUNG DAUN PISANG
^22 & 24, Lorong Cempaka 5,
^Bandar Sri Cempaka, 43000 Kajang
^Tel: 012-448 1192
Table: 14 | Pax: 3
Bill No: 00418 | 02-11-17 19:08
1 Nasi Lemak Ayam | 9.50
2 Teh Tarik | 4.40
1 Roti Bakar | 3.20
Sub Total | 17.10
Service Charge 10% | 1.71
GST 6% | 1.13
Rounding | 0.01
TOTAL | 19.95
""",
        "WARUNG DAUN PISANG",
        "22 & 24, Lorong Cempaka 5, Bandar Sri Cempaka, 43000 Kajang",
        date(2017, 11, 2),
        "19.95",
    ),
    "minimarket, registration number behind the name, total sales": (
        """
^PASARAYA MURNI JAYA SDN BHD (771204-P)
^LOT P.T. 3318, BATU 8, JALAN IPOH LAMA,
^68100 BATU CAVES, SELANGOR
^GST ID. NO : 000881273664
^INVOICE NO : 30418/102/T0281
^08:14PM 447120 05-02-18
441 GULA PASIR 1KG | RM2.95
778 TEPUNG GANDUM | RM3.60 2 | RM7.20
TOTAL SALES (INCLUSIVE GST) | RM | 10.15
CASH | RM | 20.15
CHANGE | RM | 10.00
TOTAL ITEM(S) | 3
GST SUMMARY | AMOUNT(RM) | TAX(RM)
Z = 0% | 10.15 | 0.00
""",
        "PASARAYA MURNI JAYA SDN BHD",
        "LOT P.T. 3318, BATU 8, JALAN IPOH LAMA, 68100 BATU CAVES, SELANGOR",
        date(2018, 2, 5),
        "10.15",
    ),
    "telephone between two lines of the address": (
        """
^TENAGA PAINT & HARDWARE
^No. 18-G, Jalan Sena 3,
^Tel : 03-8891 2217
^Taman Sena, 43500 Semenyih
^Selangor Darul Ehsan
^CASH BILL
CB No: 5519 | DATE : 28/12/2016
SAND PAPER 120 | 4 x 1.20 | 4.80
GLOSS WHITE 1L | 1 x 22.00 | 22.00
TOTAL AMOUNT | 26.80
""",
        "TENAGA PAINT & HARDWARE",
        "No. 18-G, Jalan Sena 3, Taman Sena, 43500 Semenyih Selangor Darul Ehsan",
        date(2016, 12, 28),
        "26.80",
    ),
    "total on the line below its label": (
        """
^AMBER FERN CAFE
^Unit G-12, Wisma Anggerik,
^Jalan Bukit 4, 50450 Kuala Lumpur
25 MAR 2018 | 10:22 AM
Flat white | 11.00
Almond croissant | 9.80
SUBTOTAL | 20.80
SERVICE TAX | 1.25
TOTAL AMOUNT PAYABLE
RM 22.05
VISA | 22.05
""",
        "AMBER FERN CAFE",
        "Unit G-12, Wisma Anggerik, Jalan Bukit 4, 50450 Kuala Lumpur",
        date(2018, 3, 25),
        "22.05",
    ),
    "nett total after total and rounding": (
        """
^KEDAI BUKU ILMU RAYA
^31, JALAN DATO HASSAN,
^83000 BATU PAHAT, JOHOR
^RECEIPT
No: R00172 | 09/07/2017 11:03
EXERCISE BOOK 80P | 6 | 2.15 | 12.90
ERASER | 2 | 0.89 | 1.78
Total | 14.68
Round Adj | 0.02
Nett Total | 14.70
Cash | 50.00
Change | 35.30
""",
        "KEDAI BUKU ILMU RAYA",
        "31, JALAN DATO HASSAN, 83000 BATU PAHAT, JOHOR",
        date(2017, 7, 9),
        "14.70",
    ),
    "american store": (
        """
^MAPLE & THIMBLE MARKET
^418 Elm Street
^Springvale, OR 97044
^(555) 010-0199
03/25/2018 4:51 PM | Reg 2
ORG BANANAS | 2.18
WHOLE MILK 1G | 4.29
SOURDOUGH | 5.50
SUBTOTAL | 11.97
TAX | 0.96
TOTAL | $12.93
VISA ****4417 | 12.93
ITEMS SOLD | 3
""",
        "MAPLE & THIMBLE MARKET",
        "418 Elm Street Springvale, OR 97044",
        date(2018, 3, 25),
        "12.93",
    ),
    "american restaurant, balance due, tip lines left empty": (
        """
^Juniper Hollow Grill
^2210 W Larkspur Ave
^Dunmore, TX 75001
Server: Pat | Table 9
Check #: 10448 | 07/30/2019
2 Brisket Plate | 31.90
1 Iced Tea | 2.75
Subtotal | 34.65
Sales Tax 8.25% | 2.86
Balance Due | 37.51
Tip: ________
Total: ________
""",
        "Juniper Hollow Grill",
        "2210 W Larkspur Ave Dunmore, TX 75001",
        date(2019, 7, 30),
        "37.51",
    ),
    "british tea room": (
        """
^The Brass Lantern
^12 High Street
^Little Marlow
^BA1 5XQ
^VAT No 417 2281 90
14 Feb 2019 13:05
Cream tea | £8.50
Pot of tea | £3.20
Total | £11.70
Card | £11.70
VAT @ 20% included | £1.95
""",
        "The Brass Lantern",
        "12 High Street Little Marlow BA1 5XQ",
        date(2019, 2, 14),
        "11.70",
    ),
    "singapore company": (
        """
^NINE LANTERNS F&B PTE LTD
^88 Serangoon Lane #02-14
^Singapore 554418
^GST Reg No: M2-8817204-4
^Tel: 6844 1190
Rcpt: A17-4471 | 03/08/2018 20:14
CHICKEN RICE | 2 | 11.60
KOPI PENG | 2 | 4.40
SUBTOTAL | 16.00
10% SVC CHG | 1.60
7% GST | 1.23
TOTAL | S$18.83
NETS | 18.83
""",
        "NINE LANTERNS F&B PTE LTD",
        "88 Serangoon Lane #02-14 Singapore 554418",
        date(2018, 8, 3),
        "18.83",
    ),
    "tax invoice printed above the name": (
        """
^TAX INVOICE
^KILANG ROTI BUNGA RAYA SDN. BHD.
^(Company No : 447120-W)
^PLOT 14, KAWASAN PERINDUSTRIAN RINGAN,
^09000 KULIM, KEDAH
DATE | : 17-04-2017
INV NO | : BR/17/00417
BUN KELAPA | 20 | 0.85 | 17.00
ROTI PUTIH | 12 | 2.20 | 26.40
TOTAL EXCL GST | 40.94
GST 6% | 2.46
TOTAL INCL GST | 43.40
AMOUNT DUE | 43.40
""",
        "KILANG ROTI BUNGA RAYA SDN. BHD.",
        "PLOT 14, KAWASAN PERINDUSTRIAN RINGAN, 09000 KULIM, KEDAH",
        date(2017, 4, 17),
        "43.40",
    ),
    "slogan in lower case and a logo above the name": (
        """
^moonleaf
^fresh every morning
^MOONLEAF BAKERY SDN. BHD.
^A-3-11, PUSAT PERDAGANGAN SERAYA,
^JALAN SERAYA, 52100 KUALA LUMPUR.
DATE: 2018-06-09 | TIME: 09:41
BUTTER LOAF | 7.90
GRAND TOTAL | RM7.90
""",
        "MOONLEAF BAKERY SDN. BHD.",
        "A-3-11, PUSAT PERDAGANGAN SERAYA, JALAN SERAYA, 52100 KUALA LUMPUR.",
        date(2018, 6, 9),
        "7.90",
    ),
    "petrol station with litres and points": (
        """
^STESEN MINYAK BUKIT DURIAN
^LOT 448, KM 12 JALAN SEREMBAN,
^71450 SUNGAI GADUT, N. SEMBILAN
^Site: 44812
Receipt No. 7714 | 11/01/18 07:44
PUMP # 03
RON95 | 22.73 litre | x 2.20 | RM 50.00
Total RM | 50.00
Points earned | 22
Points balance | 1417
""",
        "STESEN MINYAK BUKIT DURIAN",
        "LOT 448, KM 12 JALAN SEREMBAN, 71450 SUNGAI GADUT, N. SEMBILAN",
        date(2018, 1, 11),
        "50.00",
    ),
    "savings and quantities after the total": (
        """
^LANGIT BIRU HYPERMARKET
^Jalan Langit 1, 81190 Johor Bahru
^12.05.2018 18:30
Beras 5kg | 18.90
Diskaun | -2.00
Minyak masak | 12.45
TOTAL | 29.35
CASH | 50.00
CHANGE | 20.65
TOTAL SAVINGS | 32.00
TOTAL QTY | 2.00
""",
        "LANGIT BIRU HYPERMARKET",
        "Jalan Langit 1, 81190 Johor Bahru",
        date(2018, 5, 12),
        "29.35",
    ),
    "total, rounding, rounded total": (
        """
^GOLDEN PADDY ENTERPRISE
^NO 5, JLN LENGKUAS 14,
^BDR BARU HALIA, 81290 HALIA
Doc No: CS0004417 | Date: 31/10/2017
PLASTIC BAG 9X14 | 5 | 4.31 | 21.53
Total Amount | 21.53
Rounding Adjustment | 0.02
Total Rounded | 21.55
Cash Received | 22.00
Change | 0.45
""",
        "GOLDEN PADDY ENTERPRISE",
        "NO 5, JLN LENGKUAS 14, BDR BARU HALIA, 81290 HALIA",
        date(2017, 10, 31),
        "21.55",
    ),
    "date glued to the time": (
        """
^MUTIARA DOBI EXPRESS
^27 Jalan Mutiara, 11900 Bayan Lepas, Penang
Slip: 447 | 19/09/201716:20
Wash 8kg | 6.00
Dry 8kg | 5.00
TOTAL DUE | RM11.00
""",
        "MUTIARA DOBI EXPRESS",
        "27 Jalan Mutiara, 11900 Bayan Lepas, Penang",
        date(2017, 9, 19),
        "11.00",
    ),
    "name over two lines": (
        """
^ANGGERIK BIRU TRADING &
^SUPPLIES SDN BHD
^(1144720-M)
^2-1, JALAN KUNYIT 6,
^KUNYIT, 53290 KUALA KUNYIT
^GST NO : 001744829111
INVOICE | A-20177
DATE | 6/6/2018
CABLE TIE 200MM | 4.20
TOTAL | 4.20
""",
        "ANGGERIK BIRU TRADING & SUPPLIES SDN BHD",
        "2-1, JALAN KUNYIT 6, KUNYIT, 53290 KUALA KUNYIT",
        date(2018, 6, 6),
        "4.20",
    ),
    "german bakery": (
        """
^Bäckerei Moosgrün GmbH
^Lindenweg 4
^04417 Musterau
^USt-IdNr. DE447182293
25.03.2019 | 08:12
2 x Brezel | 1,80
1 x Roggenbrot | 4,40
Summe EUR | 6,20
Bar | 10,00
Rückgeld | 3,80
MwSt 7% | 0,41
""",
        "Bäckerei Moosgrün GmbH",
        "Lindenweg 4 04417 Musterau",
        date(2019, 3, 25),
        "6.20",
    ),
    "tax table at the foot without a heading of its own": (
        """
^PUSAT ELEKTRIK CAHAYA SDN BHD
^18 JALAN CAHAYA, TAMAN CAHAYA,
^31400 IPOH, PERAK
Date: 08-DEC-2017 | Counter 2
LED BULB 9W | 3 | 8.90 | 26.70
EXTENSION 4M | 1 | 32.00 | 32.00
Total incl GST | 58.70
Payment Cash | 60.00
Change | 1.30
Code | % | Net Amt | GST
SR | 6 | 55.38 | 3.32
Total | 55.38 | 3.32
""",
        "PUSAT ELEKTRIK CAHAYA SDN BHD",
        "18 JALAN CAHAYA, TAMAN CAHAYA, 31400 IPOH, PERAK",
        date(2017, 12, 8),
        "58.70",
    ),
    "bill to a customer with an address of its own": (
        """
^RIMBA PRINTING SERVICES
^No. 3A, Jalan Rimba 7, 40460 Shah Alam
^Tel 03-5121 7704
To: Tera Holdings Sdn Bhd
No 99, Jalan Lain, 50000 Kuala Lumpur
Invoice: 7741 | Date: 2 Jan 2018
Name cards 100 pcs | 1 | 35.00
TOTAL (RM) | 35.00
""",
        "RIMBA PRINTING SERVICES",
        "No. 3A, Jalan Rimba 7, 40460 Shah Alam",
        date(2018, 1, 2),
        "35.00",
    ),
    "card slip": (
        """
^HOTEL SINAR LEMBAH
^JALAN LEMBAH 1, 88300 KOTA KINABALU
TID 44718829 | MID 1177442
VISA CREDIT | **** 4471
DATE 30/04/18 | TIME 12:10
BATCH 000417 | TRACE 004471
AMOUNT | RM 188.00
TOTAL | RM 188.00
NO SIGNATURE REQUIRED
""",
        "HOTEL SINAR LEMBAH",
        "JALAN LEMBAH 1, 88300 KOTA KINABALU",
        date(2018, 4, 30),
        "188.00",
    ),
    "members, cash tendered larger than the total, ringgit in words": (
        """
^KLINIK DAN SURGERI MAWAR
^15A, Tingkat 1, Persiaran Mawar,
^41200 Klang, Selangor
^OFFICIAL RECEIPT
Receipt No : OR-1174 | Date : 21/02/2018
Received from : Puan S. Devi
Consultation | 35.00
Medicine | 48.50
Total : RM | 83.50
Cash | 100.00
Balance | 16.50
Ringgit Malaysia : Eighty three and fifty sen only
""",
        "KLINIK DAN SURGERI MAWAR",
        "15A, Tingkat 1, Persiaran Mawar, 41200 Klang, Selangor",
        date(2018, 2, 21),
        "83.50",
    ),
    "amounts with thousands": (
        """
^TIMUR JAUH FURNITURE SDN BHD
^LOT 7718, JALAN PERABOT 2, 84000 MUAR, JOHOR
Date : 15/05/2017
SOFA 3S | 1 | 1,899.00 | 1,899.00
COFFEE TABLE | 1 | 420.00 | 420.00
Sub Total | 2,319.00
Discount | -119.00
Total Payable | 2,200.00
Deposit | 500.00
Balance | 1,700.00
""",
        "TIMUR JAUH FURNITURE SDN BHD",
        "LOT 7718, JALAN PERABOT 2, 84000 MUAR, JOHOR",
        date(2017, 5, 15),
        "2200.00",
    ),
    "parking ticket": (
        """
^WISMA TIMAH CAR PARK
^Jalan Timah, 55190 Kuala Lumpur
Ticket No: 004471
Entry: 07/03/2018 09:12
Exit: 07/03/2018 12:40
Parking Fee | RM 9.00
Paid | RM 10.00
Change | RM 1.00
""",
        "WISMA TIMAH CAR PARK",
        "Jalan Timah, 55190 Kuala Lumpur",
        date(2018, 3, 7),
        "9.00",
    ),
    "address on one line, name with an apostrophe": (
        """
^MAK LONG'S KITCHEN
^Lot F-17, First Floor, Kompleks Damai, Jalan Damai, 50480 KL
^SST ID: W10-1807-44718829
Order 117 | 01-Jul-2019 12:44
Mee Goreng | 8.00
Sirap | 2.50
Sub-Total | 10.50
SST 6% | 0.63
Bill Rounding | 0.02
Total Bill | 11.15
""",
        "MAK LONG'S KITCHEN",
        "Lot F-17, First Floor, Kompleks Damai, Jalan Damai, 50480 KL",
        date(2019, 7, 1),
        "11.15",
    ),
    "chinese name over the latin one": (
        """
^明月茶室
^RESTORAN BULAN TERANG
^JA9918274-H
^8, JALAN BESAR, 86000 KLUANG, JOHOR
^16/08/2018 07:55:01
Kaya Toast | 1 | 3.00
Kopi O | 1 | 1.80
Total | 4.80
""",
        "RESTORAN BULAN TERANG",
        "8, JALAN BESAR, 86000 KLUANG, JOHOR",
        date(2018, 8, 16),
        "4.80",
    ),
    "australian company": (
        """
^Wattle & Rye Pty Ltd
^ABN 44 718 829 330
^7/22 Banksia Parade
^Fernhill VIC 3781
Tax Invoice | 19/11/2018 08:03
Long black | 4.50
Banana bread | 6.00
TOTAL (inc GST) | $10.50
EFTPOS | $10.50
GST included | $0.95
""",
        "Wattle & Rye Pty Ltd",
        "7/22 Banksia Parade Fernhill VIC 3781",
        date(2018, 11, 19),
        "10.50",
    ),
    "total items on the row of the total": (
        """
^POPULAR MAJU STORE
^14, LORONG 3, TAMAN MAJU, 08000 SUNGAI PETANI
DATE 13/06/2017 21:08
BISKUT | 2 | 3.30 | 6.60
AIR MINERAL | 6 | 0.90 | 5.40
Item Count 8 | TOTAL | 12.00
PAID CASH | 12.00
""",
        "POPULAR MAJU STORE",
        "14, LORONG 3, TAMAN MAJU, 08000 SUNGAI PETANI",
        date(2017, 6, 13),
        "12.00",
    ),
    "restaurant with service, tax and adjustment": (
        """
^AMBER PAVILION RESTAURANT
^44 Jln KL 31/99, Kunyit Kim
^47400 P.J.
^Tel No: 03-77228811
^BILL
Table No : A4 | Pax : 4
Date : 01/01/2017 8:15:11 PM
Tom Yam | 1 | 28.00
Green Curry | 1 | 24.00
Rice | 4 | 8.00
 | Total : | 60.00
 | Svc 5% : | 3.00
 | GST 6% : | 3.78
 | Adj : | 0.02
 | Grand Total : | 66.80
""",
        'AMBER PAVILION RESTAURANT',
        '44 Jln KL 31/99, Kunyit Kim 47400 P.J.',
        date(2017, 1, 1),
        "66.80",
    ),
    "workshop with a column of totals at the right": (
        """
^KHIDMAT UTAMA AUTO PARTS SDN BHD
^KM 3.5, JALAN LAMA, 70400 SEREMBAN
^TEL:06-7718822
^GST REG. NO : 001118822774
^CASH SALES
Bill To : | Bill No : CS-0912
CASH CUSTOMER | Date : 11/03/2017
 | Time : 17:09
No | Description | Qty | U/Price | Amount
1 | OIL FILTER 90915 | 1 | 18.00 | 18.00
2 | ENGINE OIL 4L | 1 | 118.00 | 118.00
RINGGIT MALAYSIA ONE HUNDRED FORTY FOUR AND SEN SIXTEEN ONLY
 | Sub Total (Ex. GST) | 136.00
 | GST Payable | 8.16
 | Total Amount Payable | 144.16
""",
        'KHIDMAT UTAMA AUTO PARTS SDN BHD',
        'KM 3.5, JALAN LAMA, 70400 SEREMBAN',
        date(2017, 3, 11),
        "144.16",
    ),
    "shop with sums of quantities and a tax summary": (
        """
^PERNIAGAAN TIN LEOK
^JM0447182-V
^NO 41, JALAN SERAI 3/8, BANDAR BARU SERAI INDAH,
^81990 SERAI INDAH
^TEL: 07-386 1177 FAX: 07-386 1178
^GST NO : 000118822733
^SIMPLIFIED TAX INVOICE
CASH
Doc No. : | CS00017722 | Date: | 12/02/2018
Cashier : | USER | Time: | 14:55:00
Salesperson : | | Ref.: |
Item | Qty | S/Price | S/Price | Amount | Tax
4471 | 1 | 5.30 | 5.30 | 5.30 | SR
PAPER CUP
Total Qty: | 1 | 5.30
Total Sales (Excluding GST) : | 5.00
Discount : | 0.00
Total GST : | 0.30
Rounding : | 0.00
Total Sales (Inclusive of GST) : | 5.30
CASH : | 5.30
Change : | 0.00
GST SUMMARY
Tax Code | % | Amt (RM) | Tax (RM)
SR | 6 | 5.00 | 0.30
 | Total : | 5.00 | 0.30
""",
        'PERNIAGAAN TIN LEOK',
        'NO 41, JALAN SERAI 3/8, BANDAR BARU SERAI INDAH, 81990 SERAI INDAH',
        date(2018, 2, 12),
        "5.30",
    ),
    "welcome above the name": (
        """
^WELCOME TO
^LOTUS HARDWARE CENTRE
^JALAN SG. CHUA, KAJANG
^OPEN DAILY 9AM - 6PM
17/11/2016 10:02:33
PIPE PVC 15MM | 8.50 X 2 | 17.00
TAPE | 1.20 X 1 | 1.20
3 ITEMS
TOTAL RM | 18.20
TENDER CASH | 20.20
CHANGE DUE | 2.00
""",
        'LOTUS HARDWARE CENTRE',
        'JALAN SG. CHUA, KAJANG',
        date(2016, 11, 17),
        "18.20",
    ),
    "fast food, former name, store number": (
        """
^PINTU CEMARA RESTORAN SDN BHD
^formerly known as OLD NAME RESTORAN SDN BHD
^(447188-T) (GST ID NO: 000772211884)
^Level 9, Bangunan Cemara, Pusat Bandar Rimba 4
^No.8, Jalan Cemara 2/17, 40990 Rimba Jaya
^Selangor
^Store #118
TAX INVOICE
MFY Side 1
ORD #02 -REG #02- 13/02/2018 17:44:18
QTY ITEM | TOTAL
1 Med Cola | 4.20
2 Burger | 17.40
TakeOut Total (incl GST) | 21.60
Total Rounded | 21.60
Cash Tendered | 50.00
Change | 28.40
TOTAL INCLUDES 6% GST | 1.22
Thank You and Please Come Again.
""",
        'PINTU CEMARA RESTORAN SDN BHD',
        'Level 9, Bangunan Cemara, Pusat Bandar Rimba 4 No.8, Jalan Cemara 2/17, 40990 Rimba Jaya Selangor',
        date(2018, 2, 13),
        "21.60",
    ),
    "name and trade on two lines": (
        """
^AIK TEOW
^HARDWARE & PAINTS S/B
^1177442-X
^No 1, Jln Raya, 14000 Bkt Mertajam, Pg.
^INVOICE NO : 8811
DATE : 3.7.2018
Cement 50kg | 10 | 17.50 | 175.00
Sand | 1 | 90.00 | 90.00
TOTAL | RM | 265.00
E. & O. E.
""",
        'AIK TEOW HARDWARE & PAINTS S/B',
        'No 1, Jln Raya, 14000 Bkt Mertajam, Pg.',
        date(2018, 7, 3),
        "265.00",
    ),
    "pharmacy: gross, discount, net, rounding": (
        """
^AKARMED PHARMACY (KENARI) SDN BHD
^Co No: 1188227-A
^17 G Jalan Kenari 5
^Bandar Kenari Jaya
^47190 Kenari
^GST ID: 002211774488
INVOICE: PS18-00441
2018/05/28 19:30
PANADOL 20S | 1 | 9.54
MASK 50S | 1 | 21.20
Gross | 30.74
Disc 10% | 3.07
Net Total | 27.67
Round | -0.02
Total Payable | 27.65
MASTER | 27.65
""",
        'AKARMED PHARMACY (KENARI) SDN BHD',
        '17 G Jalan Kenari 5 Bandar Kenari Jaya 47190 Kenari',
        date(2018, 5, 28),
        "27.65",
    ),
    "totals called TTL": (
        """
^Sushi Kawa
^Block D-7, Jalan Pinang 2/A
^Taman Pinang, 11700 Gelugor
^Pulau Pinang, Malaysia
^(Owned by Kawa Dining Sdn Bhd 1177442-D)
Check 4471 | 24-12-2018
12 Salmon | 36.00
TTL | 36.00
SST 6% | 2.16
TTL INCL SST | 38.16
ROUND | -0.01
TTL PAYABLE | 38.15
""",
        'Sushi Kawa',
        'Block D-7, Jalan Pinang 2/A Taman Pinang, 11700 Gelugor Pulau Pinang, Malaysia',
        date(2018, 12, 24),
        "38.15",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_receipt_of_this_kind(blank, kind: str) -> None:
    text, company, address, day, total = KINDS[kind]
    fields = {f.name: f.value for f in find_fields(printed(blank, text), RECEIPT)[0] if f.row is None}
    found = tuple(fields.get(name) for name in ("company", "address", "date", "total"))
    assert found == (company, address, day, Decimal(total))
