"use strict";
(() => {
  // Before and after, laid over each other: the range input moves the line between them.
  for (const [place, compare] of document.querySelectorAll(".compare").entries()) {
    const input = document.createElement("input");
    Object.assign(input, { type: "range", min: 0, max: 100, value: 50, id: "slider-" + place });
    const [before, after] = [...compare.querySelectorAll("figcaption")].map((c) => c.textContent);
    const label = document.createElement("label");
    label.htmlFor = input.id;
    label.textContent = before + " left of the line, " + after + " right of it: " + compare.dataset.name;
    const stage = compare.querySelector(".stage");
    const show = () => {
      stage.style.setProperty("--split", input.value + "%");
      input.setAttribute("aria-valuetext", input.value + " % " + before);
    };
    input.addEventListener("input", show);
    stage.append(label, input);
    compare.classList.add("sliding");
    show();
  }
})();
