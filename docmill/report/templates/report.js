"use strict";
(() => {
  // Box and row of one value light up together.
  const marks = new Map();
  for (const element of document.querySelectorAll("[data-mark]")) {
    const id = element.dataset.mark;
    if (!marks.has(id)) marks.set(id, []);
    marks.get(id).push(element);
  }
  let lit = [];
  const light = (id) => {
    for (const element of lit) element.classList.remove("lit");
    lit = marks.get(id) || [];
    for (const element of lit) element.classList.add("lit");
  };
  for (const [id, elements] of marks) {
    for (const element of elements) {
      element.addEventListener("pointerenter", () => light(id));
      element.addEventListener("focusin", () => light(id));
      element.addEventListener("pointerleave", () => { if (!document.activeElement || document.activeElement.dataset.mark !== id) light(""); });
      element.addEventListener("focusout", () => light(""));
      element.addEventListener("click", () => {
        light(id);
        const wanted = element.tagName === "rect" ? document.getElementById(id) : elements.find((e) => e.tagName === "rect");
        if (wanted) wanted.scrollIntoView({ block: "nearest", behavior: "smooth" });
      });
    }
  }

  // Which documents are shown.
  const filter = document.querySelector(".filter");
  const none = document.querySelector(".none");
  filter.hidden = false;
  const show = (wanted) => {
    let shown = 0;
    for (const element of document.querySelectorAll("[data-state]")) {
      const fits = wanted === "all" || element.dataset.state === wanted;
      element.hidden = !fits;
      if (fits && element.tagName === "ARTICLE") shown += 1;
    }
    none.hidden = shown > 0;
  };
  filter.addEventListener("change", (event) => show(event.target.value));
  const checked = filter.querySelector("input:checked");
  if (checked) show(checked.value);
})();
