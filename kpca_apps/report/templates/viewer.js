// The pictures of an image as one view: a line between before and after, zoom, position, strength.
const viewers = new Map(); // by the element that holds the pictures
(() => {
  const ZOOMS = [["fit", null, "0"], ["1:1", 1, "1"], ["2:1", 2, "2"], ["4:1", 4, "4"]];
  const LEAST = 0.25, MOST = 32, NEAR = 24, STEP = 0.1;
  const within = (value, low, high) => Math.min(Math.max(value, low), high);

  // Before and after on top of each other: the range input moves the line between them.
  for (const [place, compare] of document.querySelectorAll(".compare").entries()) {
    const input = make("input", "", { type: "range", min: 0, max: 100, value: 50, id: "slider-" + place });
    const [before, after] = [...compare.querySelectorAll("figcaption")].map((c) => c.textContent);
    const label = make("label", before + " left of the line, " + after + " right of it: " + compare.dataset.name, { htmlFor: input.id });
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

  const watch = (group) => {
    const frames = [...group.querySelectorAll(".frame")];
    const whole = (frame) => frame.lastElementChild.naturalWidth || frame.lastElementChild.width;
    const place = [0.5, 0.5]; // of the picture, in the middle of its frame
    let zoom = null; // pixels of the screen for one of a picture; null: as large as its frame
    const scaleIn = (frame) => zoom === null ? 1 : zoom * whole(frame) / frame.clientWidth;
    const sides = (frame) => [frame.clientWidth, frame.clientHeight];
    const draw = () => {
      for (const frame of frames) {
        const scale = scaleIn(frame);
        const at = sides(frame).map((side, axis) => scale <= 1
          ? side * (1 - scale) / 2
          : within(side * (0.5 - place[axis] * scale), side * (1 - scale), 0));
        for (const picture of frame.children) {
          picture.style.transform = zoom === null ? "" : `translate(${at[0]}px, ${at[1]}px) scale(${scale})`;
          picture.style.imageRendering = zoom >= 2 ? "pixelated" : "";
        }
      }
      group.classList.toggle("magnified", zoom !== null);
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.zoom === zoom));
    };
    const move = (to) => {
      const half = 0.5 / Math.max(scaleIn(frames[0]), 1);
      for (const axis of [0, 1]) place[axis] = within(to[axis], half, 1 - half);
      draw();
    };
    // The point of the picture under the pointer stays there.
    const zoomTo = (wanted, frame = frames[0], point = null) => {
      const from = (point ?? sides(frame).map((side) => side / 2)).map((at, axis) => at / sides(frame)[axis] - 0.5);
      const seen = place.map((at, axis) => at + from[axis] / scaleIn(frame));
      zoom = wanted;
      move(seen.map((at, axis) => at - from[axis] / scaleIn(frame)));
    };
    const zoomBy = (factor, frame = frames[0], point = null) => {
      const now = zoom ?? frame.clientWidth / whole(frame);
      zoomTo(within(now * factor, LEAST, MOST), frame, point);
    };
    const pan = (x, y) => move([x, y].map((by, axis) => place[axis] + by * STEP));

    const bar = make("div", "", { className: "viewer" });
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "View of " + (group.dataset.name || "all"));
    const buttons = ZOOMS.map(([text, wanted, key]) => {
      const button = make("button", text, { type: "button", title: "key " + key, zoom: wanted });
      button.addEventListener("click", () => zoomTo(wanted));
      return button;
    });
    bar.append(...buttons);
    if (group.dataset.share) bar.append(make("span", "of pictures at " + group.dataset.share + " of the size of the image", { className: "note" }));

    // A weaker result is the mean of the noisy and the denoised image, weighted by the strength.
    // Colours that are smoothed less lose less of their two differences; luminance, the mean of the
    // channels, does not change. A factor of the noise level is squared in its variance, and about
    // as much of the noise is removed.
    const sliders = {}, updates = [];
    const overs = [...group.querySelectorAll(".over .frame")];
    const beforeOf = (frame) => frame.closest(".stage").querySelector(".under img");
    const shareOf = (name) => sliders[name] ? Number(sliders[name].value) / Number(sliders[name].max) : 1;
    const mixColours = (frame, share) => {
      const after = frame.querySelector("img:last-child");
      let canvas = frame.querySelector("canvas");
      after.classList.toggle("replaced", share < 1);
      if (share === 1) return canvas?.remove();
      canvas ??= make("canvas", "", { width: after.naturalWidth, height: after.naturalHeight });
      const pen = canvas.getContext("2d", { willReadFrequently: true });
      const [mixed, denoised] = [beforeOf(frame), after].map((picture) => {
        pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
        return pen.getImageData(0, 0, canvas.width, canvas.height);
      });
      const [noisy, clean] = [mixed.data, denoised.data];
      for (let i = 0; i < noisy.length; i += 4) {
        const off = [0, 1, 2].map((channel) => clean[i + channel] - noisy[i + channel]);
        const grey = (off[0] + off[1] + off[2]) / 3;
        for (const channel of [0, 1, 2]) noisy[i + channel] += grey + share * (off[channel] - grey);
      }
      pen.putImageData(mixed, 0, 0);
      after.before(canvas);
    };
    const mix = () => {
      const share = shareOf("strength");
      for (const frame of overs) {
        if (!frame.querySelector(".beneath")) {
          const below = beforeOf(frame).cloneNode();
          frame.prepend(Object.assign(below, { alt: "", className: below.className + " beneath" }));
        }
        mixColours(frame, shareOf("chroma") ** 2);
      }
      for (const picture of group.querySelectorAll(".over :is(img:last-child, canvas), .residual img")) picture.style.opacity = share;
      for (const update of updates) update();
      draw();
    };
    for (const name of ["strength", "chroma"]) {
      const most = Number(group.dataset[name] ?? 0);
      if (most <= 0) continue;
      const input = make("input", "", { type: "range", min: 0, max: most, step: most / 20, value: most });
      const output = make("output", ""), label = make("label", name + " ");
      const update = () => {
        const words = Number(Number(input.value).toFixed(3)).toString();
        input.setAttribute("aria-valuetext", words);
        output.textContent = shareOf(name) < 1 ? words + ", a preview: the two pictures mixed" : words;
      };
      sliders[name] = input;
      updates.push(update);
      input.addEventListener("input", mix);
      label.append(input);
      bar.append(label, output);
      update();
    }
    group.prepend(bar);

    const frameAt = (event) => event.target.closest(".stage, .residual")?.querySelector(".frame");
    group.addEventListener("wheel", (event) => {
      const frame = frameAt(event);
      if (!event.ctrlKey || !frame) return;
      event.preventDefault();
      const box = frame.getBoundingClientRect();
      zoomBy(2 ** (-event.deltaY / 250), frame, [event.clientX - box.left, event.clientY - box.top]);
    }, { passive: false });
    let drag = null;
    group.addEventListener("pointerdown", (event) => {
      const frame = frameAt(event), stage = event.target.closest(".stage");
      if (zoom === null || !frame || event.button) return;
      event.preventDefault();
      const box = frame.getBoundingClientRect(), line = stage?.querySelector("input");
      const isLine = line && Math.abs(event.clientX - box.left - box.width * line.value / 100) < NEAR;
      drag = { frame, line: isLine ? line : null, from: [event.clientX, event.clientY], place: [...place] };
      (line ?? frame).focus?.({ preventScroll: true });
      group.setPointerCapture(event.pointerId);
    });
    group.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const { frame, line } = drag, box = frame.getBoundingClientRect();
      if (line) {
        line.value = 100 * (event.clientX - box.left) / box.width;
        line.dispatchEvent(new Event("input"));
        return;
      }
      const by = [event.clientX, event.clientY].map((at, axis) => (at - drag.from[axis]) / (sides(frame)[axis] * scaleIn(frame)));
      move(drag.place.map((at, axis) => at - by[axis]));
    });
    for (const end of ["pointerup", "pointercancel"]) group.addEventListener(end, () => { drag = null; });
    group.addEventListener("dragstart", (event) => event.preventDefault());
    new ResizeObserver(draw).observe(group);
    viewers.set(group, { bar, sliders, zoomTo, zoomBy, pan });
    draw();
  };
  for (const group of document.querySelectorAll(".views, .trials")) watch(group);

  // The view with the focus or inside the focused element; else the first on the screen.
  const here = () => {
    const focus = document.activeElement, all = [...viewers.keys()];
    const found = focus === document.body ? null : all.find((one) => one.contains(focus) || focus.contains(one));
    return viewers.get(found ?? all.find((one) => one.getBoundingClientRect().bottom > 0));
  };
  const PANS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  onKeys((event) => {
    const view = here();
    if (!view) return null;
    if (event.shiftKey && PANS[event.key]) return () => view.pan(...PANS[event.key]);
    if (event.key === "+" || event.key === "=") return () => view.zoomBy(2 ** 0.5);
    if (event.key === "-") return () => view.zoomBy(2 ** -0.5);
    const zoom = ZOOMS.find(([, , key]) => key === event.key);
    return zoom && (() => view.zoomTo(zoom[1]));
  }, () => {});

  // Sort the images.
  const images = document.querySelector(".images");
  if (images && images.children.length > 1) {
    const all = [...images.children];
    const select = make("select", "");
    for (const [value, text] of [["", "name"], ["taken", "change, most first"], ["level", "noise found, most first"]]) {
      select.append(make("option", text, { value }));
    }
    select.addEventListener("change", () => {
      const by = select.value, order = [...all];
      if (by) order.sort((a, b) => b.dataset[by] - a.dataset[by]);
      images.append(...order);
    });
    const label = make("label", "Images by ");
    label.append(select);
    const bar = make("div", "", { className: "filter" });
    bar.append(label);
    images.before(bar);
  }
})();
