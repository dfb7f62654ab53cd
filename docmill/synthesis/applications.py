"""Application forms: typed or filled in by hand, with check boxes, a table of employers and a signature."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from docmill.synthesis import inventions
from docmill.synthesis.canvas import FAINT, Canvas
from docmill.truth import FieldTruth, TableTruth

A4 = (595.0, 842.0)
LEFT, RIGHT = 48.0, 547.0
GENDERS = ("female", "male", "other")
STATUSES = ("single", "married", "divorced", "widowed")
COLUMNS = ("from_date", "to_date", "employer", "position")


@dataclass(frozen=True, slots=True)
class Applicant:
    """What one form says. ``fields``: name of the field to its text."""

    fields: dict[str, str]
    gender: str
    marital_status: str
    employed: bool
    newsletter: bool
    terms_accepted: bool
    signed: bool
    jobs: tuple[tuple[str, str, str, str], ...]


def _jobs(rng: random.Random, start: date) -> tuple[tuple[str, str, str, str], ...]:
    rows = []
    for _ in range(rng.randint(2, 4)):
        end = start + timedelta(days=rng.randint(300, 1500))
        rows.append(
            (start.strftime("%m/%Y"), end.strftime("%m/%Y"), rng.choice(inventions.FIRMS), rng.choice(inventions.JOBS))
        )
        start = end + timedelta(days=rng.randint(5, 120))
    return tuple(rows)


def _applicant(rng: random.Random, seed: int) -> Applicant:
    name = inventions.person(rng)
    born = inventions.day(rng, date(1955, 1, 1), date(2001, 12, 31))
    filled = inventions.day(rng)
    way = rng.choice(("%d/%m/%Y", "%d-%m-%Y", "%d %b %Y"))
    employed = rng.random() < 0.6
    fields = {
        "application_no": f"AF-{inventions.number(seed)}",
        "application_date": filled.strftime(way),
        "name": name,
        "date_of_birth": born.strftime(way),
        "nationality": rng.choice(inventions.COUNTRIES),
        "id_number": f"{rng.choice('KLMNP')}{rng.randint(1000000, 9999999)}",
        "address": inventions.street(rng),
        "city": rng.choice(inventions.TOWNS),
        "postcode": inventions.postcode(rng),
        "country": rng.choice(inventions.COUNTRIES),
        "phone": inventions.phone(rng),
        "email": f"{name.lower().replace(' ', '.')}@example.com",
        "occupation": rng.choice(inventions.JOBS),
        "employer": rng.choice(inventions.FIRMS) if employed else "",
        "monthly_income": inventions.money(Decimal(rng.randint(180, 720) * 10)) if employed else "",
    }
    return Applicant(
        fields=fields,
        gender=rng.choice(GENDERS),
        marital_status=rng.choice(STATUSES),
        employed=employed,
        newsletter=rng.random() < 0.5,
        terms_accepted=rng.random() < 0.9,
        signed=rng.random() < 0.9,
        jobs=_jobs(rng, born + timedelta(days=19 * 365)),
    )


class Form:
    """Draws an applicant's answers on a page, by pen or by typewriter."""

    def __init__(self, paper: Canvas, answers: Applicant, rng: random.Random, *, by_hand: bool) -> None:
        self.paper = paper
        self.answers = answers
        self._rng = rng
        self._by_hand = by_hand

    def answer(self, x: float, y: float, name: str, size: float = 10.5) -> None:
        """Write the field's text, or nothing where it is empty."""
        self._write(x, y, self.answers.fields[name], name, size)

    def _write(self, x: float, y: float, text: str, name: str | None, size: float = 10.5) -> None:
        if not text:
            if name is not None:
                self.paper.fields[name] = [FieldTruth("", None, self.paper.number)]
        elif self._by_hand:
            self.paper.written(x, y, text, self._rng, size, field=name)
        else:
            self.paper.text(x, y, text, size, field=name)

    def boxed(self, x: float, y: float, width: float, label: str, name: str, height: float = 32) -> None:
        """A ruled box with its label small at the top and the answer below."""
        self.paper.frame(x, y, x + width, y + height, thickness=0.7)
        self.paper.text(x + 4, y + 3, label, 7.5, colour=FAINT)
        self.answer(x + 8, y + 15, name)

    def lined(self, x: float, y: float, width: float, label: str, name: str) -> None:
        """A label with a line behind it for the answer."""
        self.paper.text(x, y, f"{label}:", 9.5)
        start = x + self.paper.measure(f"{label}:", 9.5) + 5
        self.paper.rule(start, y + 13, x + width, y + 13, thickness=0.6)
        self.answer(start + 5, y - 1.5, name)

    def choice(
        self, x: float, y: float, label: str, name: str, options: Sequence[str], chosen: str, step: float
    ) -> None:
        """A label and one check box for each option."""
        self.paper.text(x, y - 1, f"{label}:", 9.5)
        x += max(96, self.paper.measure(f"{label}:", 9.5) + 12)
        for option in options:
            end = self.paper.checkbox(
                x, y, option.capitalize(), option == chosen, self._rng, field=name, option=option,
                spoken=f"{label} {option.capitalize()}",
            )  # fmt: skip
            x = max(x + step, end + 12)

    def yes_no(self, x: float, y: float, label: str, name: str, answer: bool, behind: float) -> None:
        """A question with a box for yes and one for no."""
        self.paper.text(x, y - 1, label, 9.5)
        for offset, printed, stands_for in ((0, "Yes", True), (52, "No", False)):
            self.paper.checkbox(
                behind + offset, y, printed, answer is stands_for, self._rng, field=name,
                option=str(stands_for).lower(), spoken=f"{label} {printed}",
            )  # fmt: skip

    def tick(self, x: float, y: float, label: str, name: str, answer: bool) -> None:
        """One box that is ticked or left empty."""
        self.paper.checkbox(x, y, label, answer, self._rng, field=name, option="true")
        if not answer:
            self.paper.fields[name] = [FieldTruth("false", self.paper.checkboxes[-1].box, self.paper.number)]

    def jobs(self, y: float, title: str, header: tuple[str, ...], spare_rows: int = 1) -> float:
        """The table of employers; returns the y below it."""
        edges = (LEFT, LEFT + 68, LEFT + 136, LEFT + 340, RIGHT)
        self.paper.text(LEFT, y, title, 10.5, bold=True)
        top, height = y + 17, 21.0
        self.paper.frame(LEFT, top, RIGHT, top + height, fill=(232, 235, 240), thickness=0.8)
        for x, text in zip(edges, header, strict=False):
            self.paper.text(x + 5, top + 5, text, 9, bold=True)
        y = top + height
        for row in self.answers.jobs:
            for x, text in zip(edges, row, strict=False):
                self._write(x + 5, y + 4.5, text, None, 9.5)
            self.paper.frame(LEFT, y, RIGHT, y + height, thickness=0.8)
            y += height
        for _ in range(spare_rows):
            self.paper.frame(LEFT, y, RIGHT, y + height, thickness=0.8)
            y += height
        for x in edges[1:-1]:
            self.paper.rule(x, top, x, y, thickness=0.8)
        self.paper.tables.append(
            TableTruth(title, header, self.answers.jobs, self.paper.number, "employment_history", COLUMNS)
        )
        return y

    def sign(self, y: float, date_label: str, sign_label: str) -> None:
        """The line with date and signature."""
        self.paper.rule(LEFT, y, LEFT + 170, y, thickness=0.7)
        self.answer(LEFT + 10, y - 15, "application_date")
        self.paper.text(LEFT, y + 4, date_label, 8.5)
        self.paper.rule(RIGHT - 240, y, RIGHT, y, thickness=0.7)
        self.paper.text(RIGHT - 240, y + 4, sign_label, 8.5)
        self.paper.fields["signature"] = [FieldTruth("false", None, self.paper.number)]
        if self.answers.signed:
            self.paper.signature(RIGHT - 210, y - 30, 150, 34, self._rng, field="signature")


def _employment(paper: Canvas, answers: Applicant, rng: random.Random, by_hand: bool) -> list[Canvas]:
    """Boxes with small labels; one page."""
    form = Form(paper, answers, rng, by_hand=by_hand)
    paper.text(LEFT, 42, "APPLICATION FOR EMPLOYMENT", 17, bold=True)
    paper.text(LEFT, 66, "Please complete every box in ink. Willowham Works Personnel Office", 8.5, colour=FAINT)
    paper.frame(RIGHT - 130, 38, RIGHT, 72, thickness=1)
    paper.text(RIGHT - 125, 41, "Application No", 7.5, colour=FAINT)
    paper.text(RIGHT - 121, 53, answers.fields["application_no"], 11, field="application_no")
    rows: tuple[tuple[tuple[str, str, float], ...], ...] = (
        (("Full name", "name", 299), ("Date of birth", "date_of_birth", 200)),
        (("Home address", "address", 250), ("City", "city", 149), ("Postcode", "postcode", 100)),
        (("Country", "country", 166), ("Nationality", "nationality", 166), ("ID number", "id_number", 167)),
        (("Phone", "phone", 199), ("E-mail address", "email", 300)),
        (("Position applied for", "occupation", 299), ("Monthly income", "monthly_income", 200)),
        (("Present employer", "employer", 499),),
    )
    y = 86.0
    for row in rows:
        x = LEFT
        for label, name, width in row:
            form.boxed(x, y, width, label, name)
            x += width
        y += 32
    form.choice(LEFT, y + 16, "Gender", "gender", GENDERS, answers.gender, 84)
    form.choice(LEFT, y + 38, "Marital status", "marital_status", STATUSES, answers.marital_status, 84)
    form.yes_no(LEFT, y + 60, "Are you currently employed?", "employed", answers.employed, LEFT + 180)
    y = form.jobs(y + 86, "Previous employment", ("From", "To", "Employer", "Position held"))
    form.tick(LEFT, y + 18, "Subscribe to newsletter", "newsletter", answers.newsletter)
    form.tick(LEFT, y + 38, "I declare that the above is true", "terms_accepted", answers.terms_accepted)
    form.sign(y + 106, "Date", "Signature of applicant")
    return [paper]


def _membership(paper: Canvas, answers: Applicant, rng: random.Random, by_hand: bool) -> list[Canvas]:
    """Labels with lines; two pages, the employers on the second."""
    form = Form(paper, answers, rng, by_hand=by_hand)
    paper.text(A4[0] / 2, 44, "Harrowmere Guild of Makers", 11, align="center", colour=FAINT)
    paper.text(A4[0] / 2, 62, "Membership Application Form", 18, bold=True, align="center")
    paper.text(RIGHT, 96, f"Form No: {answers.fields['application_no']}", 9.5, align="right",
               field="application_no", value=answers.fields["application_no"])  # fmt: skip
    paper.rule(LEFT, 114, RIGHT, 114, thickness=1.2)
    paper.text(LEFT, 124, "1. About you", 11.5, bold=True)
    pairs = (
        (("Name of applicant", "name", 499),),
        (("Date of birth", "date_of_birth", 240), ("Nationality", "nationality", 249)),
        (("Passport No", "id_number", 240), ("Telephone", "phone", 249)),
        (("Address", "address", 499),),
        (("Town", "city", 160), ("Zip code", "postcode", 150), ("Country", "country", 179)),
        (("Email", "email", 499),),
    )
    y = 152.0
    for row in pairs:
        x = LEFT
        for label, name, width in row:
            form.lined(x, y, width - 10, label, name)
            x += width + (10 if len(row) == 2 else 0)
        y += 27
    form.choice(LEFT, y + 4, "Sex", "gender", GENDERS, answers.gender, 84)
    form.choice(LEFT, y + 28, "Civil status", "marital_status", STATUSES, answers.marital_status, 84)
    paper.text(LEFT, y + 60, "2. Your work", 11.5, bold=True)
    form.yes_no(LEFT, y + 88, "Are you employed?", "employed", answers.employed, LEFT + 130)
    form.lined(LEFT, y + 114, 240, "Profession", "occupation")
    form.lined(LEFT + 260, y + 114, 239, "Salary", "monthly_income")
    form.lined(LEFT, y + 141, 489, "Employer", "employer")
    paper.text(A4[0] / 2, 800, "Page 1 of 2", 8.5, align="center", colour=FAINT)
    second = Canvas(*A4, dpi=round(paper.scale * 72), font=paper.font, number=2)
    form = Form(second, answers, rng, by_hand=by_hand)
    second.text(LEFT, 44, f"Membership application {answers.fields['application_no']}", 9.5, colour=FAINT)
    y = form.jobs(70, "3. Employment history", ("Start date", "End date", "Employer name", "Position"), 2)
    second.text(LEFT, y + 24, "4. Declaration", 11.5, bold=True)
    form.tick(LEFT, y + 50, "I wish to receive news", "newsletter", answers.newsletter)
    form.tick(LEFT, y + 72, "I accept the terms", "terms_accepted", answers.terms_accepted)
    form.sign(y + 150, "Date of application", "Signature")
    second.text(A4[0] / 2, 800, "Page 2 of 2", 8.5, align="center", colour=FAINT)
    return [paper, second]


def _tenancy(paper: Canvas, answers: Applicant, rng: random.Random, by_hand: bool) -> list[Canvas]:
    """A two-column table with the label in the left cell; one page."""
    form = Form(paper, answers, rng, by_hand=by_hand)
    paper.frame(LEFT, 36, RIGHT, 74, fill=(40, 74, 66), thickness=0)
    paper.text(LEFT + 12, 45, "TENANCY APPLICATION", 16, bold=True, colour=(255, 255, 255))
    rows = (
        ("Reference No", "application_no"), ("Full Name", "name"), ("Date of Birth", "date_of_birth"),
        ("Citizenship", "nationality"), ("Identity Card No", "id_number"), ("Street Address", "address"),
        ("City/Town", "city"), ("Postal Code", "postcode"), ("Country", "country"), ("Mobile No", "phone"),
        ("Email Address", "email"), ("Occupation", "occupation"), ("Current Employer", "employer"),
        ("Net Monthly Income", "monthly_income"),
    )  # fmt: skip
    y = 84.0
    for label, name in rows:
        paper.frame(LEFT, y, LEFT + 150, y + 22, fill=(238, 242, 240), thickness=0.7)
        paper.frame(LEFT + 150, y, RIGHT, y + 22, thickness=0.7)
        paper.text(LEFT + 6, y + 5, label, 9.5)
        form.answer(LEFT + 158, y + 4.5, name)
        y += 22
    form.choice(LEFT, y + 16, "Gender", "gender", GENDERS, answers.gender, 84)
    form.choice(LEFT, y + 38, "Marital Status", "marital_status", STATUSES, answers.marital_status, 84)
    form.yes_no(LEFT, y + 60, "Currently employed", "employed", answers.employed, LEFT + 130)
    y = form.jobs(y + 86, "Previous employment history", ("Since", "Until", "Company", "Job title"), 0)
    form.tick(LEFT, y + 18, "Send me news", "newsletter", answers.newsletter)
    form.tick(LEFT, y + 38, "I agree to the terms", "terms_accepted", answers.terms_accepted)
    form.sign(y + 106, "Date signed", "Applicant's signature")
    return [paper]


Layout = Callable[[Canvas, Applicant, random.Random, bool], list[Canvas]]
LAYOUTS: tuple[tuple[Layout, int], ...] = ((_employment, 1), (_membership, 2), (_tenancy, 1))


def draw_application(
    rng: random.Random, seed: int, *, dpi: int, font: str | None, pages: int | None = None
) -> list[Canvas]:
    """One form of one or two pages; of ``pages`` pages where that is given."""
    answers = _applicant(rng, seed)
    by_hand = rng.random() < 0.5
    paper = Canvas(*A4, dpi=dpi, font=font)
    fitting = [draw for draw, length in LAYOUTS if pages in (None, length)]
    return fitting[seed % len(fitting)](paper, answers, rng, by_hand)
