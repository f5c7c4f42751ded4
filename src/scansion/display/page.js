// Interaction only: everything that matters is in the page without it. Text enters as text, never as HTML.
(() => {
  "use strict";
  const make = (tag, look, ...content) => {
    const node = document.createElement(tag);
    if (look) node.className = look;
    node.append(...content);
    return node;
  };
  const share = (p) => (p >= 0.0005 ? p.toFixed(3) : p.toPrecision(2));

  // ---- one sequence, made when it is first needed ------------------------------------------------------------------
  class SequenceView {
    constructor(entry) {
      this.flow = entry.querySelector(".flow");
      this.data = JSON.parse(entry.querySelector("script.data").textContent);
      this.cells = [...this.flow.querySelectorAll(".cell")];
      this.number = new Map(this.cells.map((cell, t) => [cell, t]));
      this.bars = new Map(); // "level.number" -> the pieces of a segment
      for (const bar of this.flow.querySelectorAll(".bar[data-s]")) {
        const known = this.bars.get(bar.dataset.s);
        if (known) known.push(bar);
        else this.bars.set(bar.dataset.s, [bar]);
      }
      this.scroll = entry.querySelector(".heat .scroll");
      this.readout = entry.querySelector(".readout");
      this.column = -1;
    }

    token(t) {
      return this.cells[t].firstChild.textContent;
    }

    // a segment that goes on in the next line says its name again; no name is wider than its segment in the line
    continued(part) {
      const cells = [...part.children];
      const places = cells.map((cell) => [cell.offsetTop, cell.offsetLeft, cell.offsetLeft + cell.offsetWidth]);
      const first = this.number.get(cells[0]);
      for (const bar of part.querySelectorAll(".again")) bar.classList.remove("again");
      cells.forEach((cell, i) => {
        const begins = first + i > 0 && (i === 0 || places[i][0] > places[i - 1][0]);
        for (const bar of cell.querySelectorAll(begins ? ".bar[data-s]" : ".bar.first[data-s]")) {
          const [level, number] = bar.dataset.s.split(".").map(Number);
          const [, stop, label] = this.data.levels[level][number];
          let last = i;
          while (last + 1 < cells.length && first + last + 1 < stop && places[last + 1][0] === places[i][0]) last++;
          bar.style.setProperty("--room", `${places[last][2] - places[i][1]}px`);
          if (bar.classList.contains("first")) continue;
          bar.dataset.again = this.data.labels[label];
          bar.classList.add("again");
        }
      });
    }

    go(key) {
      const bar = this.bars.get(key)[0];
      const before = this.flow.querySelector('[tabindex="0"]');
      if (before) before.tabIndex = -1;
      bar.tabIndex = 0;
      bar.focus();
    }

    // the segment that a key leads to, or null
    step(key, from) {
      const [level, number] = from.split(".").map(Number);
      const levels = this.data.levels;
      const last = levels[level].length - 1;
      const beside = (by) => {
        let d = level + by;
        while (d >= 0 && d < levels.length && !levels[d].length) d += by;
        if (d < 0 || d >= levels.length) return from;
        const found = levels[d].findIndex((span) => span[1] > levels[level][number][0]);
        return `${d}.${found < 0 ? levels[d].length - 1 : found}`;
      };
      switch (key) {
        case "ArrowRight": return `${level}.${Math.min(number + 1, last)}`;
        case "ArrowLeft": return `${level}.${Math.max(number - 1, 0)}`;
        case "Home": return `${level}.0`;
        case "End": return `${level}.${last}`;
        case "ArrowUp": return beside(1); // the top level is the lowest bar
        case "ArrowDown": return beside(-1);
        default: return null;
      }
    }

    mark(key, on) {
      for (const bar of this.bars.get(key) || []) bar.classList.toggle("on", on);
    }

    chip(label, small) {
      const chip = make("span", `chip ${this.data.looks[label]}`, this.data.labels[label]);
      if (small) chip.append(make("small", "", small));
      return chip;
    }

    // what there is to say about a segment
    about(key) {
      const [level, number] = key.split(".").map(Number);
      const [start, stop, label] = this.data.levels[level][number];
      const where = stop === start + 1 ? `token ${start}` : `tokens ${start}:${stop}`;
      const name = this.data.names[level];
      const words = this.cells.slice(start, Math.min(stop, start + 40)).map((cell) => cell.firstChild.textContent).join(" ");
      const text = words.length > 160 || stop > start + 40 ? `${words.slice(0, 159)}\u2026` : words;
      const parts = [make("div", "", this.chip(label), ` ${name}${name ? ", " : ""}${where}`), make("p", "quote", text)];
      if (level === this.data.scored) {
        const mass = new Map();
        for (let t = start; t < stop; t++) {
          const row = this.data.likely[t];
          for (let i = 0; i < row.length; i += 2) {
            const y = this.data.meaning[row[i]] ?? row[i];
            mass.set(y, (mass.get(y) || 0) + row[i + 1] / (stop - start));
          }
        }
        const rows = [...mass].sort((a, b) => b[1] - a[1]).slice(0, 4);
        parts.push(this.list(rows.map(([y, p]) => [p, [this.chip(y)]])));
      }
      const others = [];
      for (const [p, levels] of this.data.alternatives) {
        const here = (levels[level] || []).filter((span) => span[0] < stop && span[1] > start);
        if (here.length === 1 && here[0][0] === start && here[0][1] === stop && here[0][2] === label) continue;
        if (!here.length) continue; // it says nothing of this part
        others.push([p, here.slice(0, 8).map((span) => this.chip(span[2], `${span[0]}:${span[1]}`))]);
      }
      if (others.length) parts.push(make("p", "quiet", "Alternatives"), this.list(others.slice(0, 5)));
      return parts;
    }

    list(rows) {
      const list = make("dl", "");
      for (const [p, content] of rows) {
        const bar = make("i", "");
        bar.style.width = `${100 * p}%`;
        list.append(make("dt", "", share(p)), make("dd", "", make("span", "meter", bar)), make("dd", "", ...content));
      }
      return list;
    }

    // the marginals of one token, in words
    read(t) {
      const at = Math.max(0, Math.min(t, this.cells.length - 1));
      if (at === this.column) return;
      this.column = at;
      const width = Number(this.scroll.dataset.cell);
      this.scroll.querySelector(".column").setAttribute("x", at * width);
      const row = this.data.likely[at];
      const said = [];
      for (let i = 0; i < row.length; i += 2) said.push(`${this.data.labels[row[i]]} ${share(row[i + 1])}`);
      this.readout.textContent = `${at}: ${this.token(at)} \u2014 ${said.join(", ")}`;
    }

    walk(key) {
      const to = { ArrowRight: this.column + 1, ArrowLeft: this.column - 1, Home: 0, End: this.cells.length - 1 }[key];
      if (to === undefined) return false;
      this.read(to);
      const width = Number(this.scroll.dataset.cell);
      const x = this.column * width;
      if (x < this.scroll.scrollLeft) this.scroll.scrollLeft = x;
      else this.scroll.scrollLeft = Math.max(this.scroll.scrollLeft, x + width - this.scroll.clientWidth);
      return true;
    }
  }

  // ---- all sequences of a page -------------------------------------------------------------------------------------
  const sequences = (root) => {
    const views = new WeakMap();
    const view = (node) => {
      const entry = node.closest(".entry");
      if (!views.has(entry)) views.set(entry, new SequenceView(entry));
      return views.get(entry);
    };
    const tip = make("div", "tip");
    tip.hidden = true;
    tip.setAttribute("aria-hidden", "true"); // the segment's own label says the same
    root.append(tip);
    let shown = null; // [view, key]

    const hide = () => {
      if (shown) shown[0].mark(shown[1], false);
      shown = null;
      tip.hidden = true;
    };
    const show = (bar) => {
      const [one, key] = [view(bar), bar.dataset.s];
      if (!shown || shown[0] !== one || shown[1] !== key) {
        hide();
        shown = [one, key];
        one.mark(key, true);
        tip.replaceChildren(...one.about(key));
      }
      tip.hidden = false;
      const frame = root.getBoundingClientRect();
      const box = bar.getBoundingClientRect();
      const left = Math.min(box.left - frame.left, root.clientWidth - tip.offsetWidth - 8);
      tip.style.left = `${Math.max(8, left)}px`;
      const below = box.bottom + tip.offsetHeight + 12 < window.innerHeight || box.top < tip.offsetHeight + 12;
      tip.style.top = `${below ? box.bottom - frame.top + 8 : box.top - frame.top - tip.offsetHeight - 8}px`;
    };
    const segment = (event) => event.target.closest(".flow .bar[data-s]");

    root.addEventListener("mouseover", (event) => {
      const bar = segment(event);
      if (bar) show(bar);
      else hide();
    });
    root.addEventListener("mouseleave", hide);
    root.addEventListener("focusin", (event) => {
      const bar = segment(event);
      if (bar) show(bar);
    });
    root.addEventListener("focusout", hide);
    root.addEventListener("click", (event) => {
      const bar = segment(event);
      if (bar) view(bar).go(bar.dataset.s);
    });
    root.addEventListener("mousemove", (event) => {
      const scroll = event.target.closest(".heat .scroll");
      if (!scroll) return;
      const x = event.clientX - scroll.querySelector("svg").getBoundingClientRect().left;
      const t = Math.floor(x / Number(scroll.dataset.cell));
      const one = view(scroll);
      if (t >= 0 && t < one.cells.length) one.read(t);
    });
    root.addEventListener("keydown", (event) => {
      const bar = segment(event);
      const scroll = event.target.closest(".heat .scroll");
      if (event.key === "Escape") hide();
      else if (bar) {
        const to = view(bar).step(event.key, bar.dataset.s);
        if (to === null) return;
        event.preventDefault();
        view(bar).go(to);
      } else if (scroll && view(scroll).walk(event.key)) event.preventDefault();
    });

    // names at the starts of lines change with the width, and matter where they can be seen
    if (!window.ResizeObserver || !window.IntersectionObserver) return;
    const resized = new ResizeObserver((changes) => {
      for (const change of changes) view(change.target).continued(change.target);
    });
    const seen = new IntersectionObserver((changes) => {
      for (const change of changes) {
        if (!change.isIntersecting) continue;
        seen.unobserve(change.target);
        resized.observe(change.target);
      }
    }, { rootMargin: "400px" });
    for (const part of root.querySelectorAll(".flow .part")) seen.observe(part);
  };

  // ---- reports -----------------------------------------------------------------------------------------------------
  const find = (box) => {
    const input = box.querySelector("input");
    const told = box.querySelector("[role=status]");
    const rows = [...box.parentElement.querySelectorAll("tr[data-feature]")];
    const cards = [...box.parentElement.querySelectorAll(".card")];
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let count = 0;
      for (const row of rows) {
        const fits = row.querySelector(".feature").textContent.toLowerCase().includes(wanted);
        row.hidden = !fits;
        count += fits;
      }
      for (const card of cards) card.hidden = !card.querySelector("tr[data-feature]:not([hidden])");
      told.textContent = wanted ? `${count} of ${rows.length}` : "";
    });
    box.hidden = false;
  };

  const graph = (picture) => {
    const edges = [...picture.querySelectorAll(".edge")];
    const nodes = [...picture.querySelectorAll(".node")];
    const ask = (node) => {
      picture.classList.toggle("asked", node !== null);
      for (const edge of edges) edge.classList.toggle("on", node !== null && edge.dataset.ends.split(" ").includes(node));
    };
    nodes.forEach((node, i) => {
      for (const event of ["mouseenter", "focus"]) node.addEventListener(event, () => ask(node.dataset.n));
      for (const event of ["mouseleave", "blur"]) node.addEventListener(event, () => ask(null));
      node.addEventListener("keydown", (event) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!by) return;
        event.preventDefault();
        const to = nodes[(i + by + nodes.length) % nodes.length];
        node.setAttribute("tabindex", "-1");
        to.setAttribute("tabindex", "0");
        to.focus();
      });
    });
  };

  for (const root of document.querySelectorAll(".scansion:not([data-ready])")) {
    root.dataset.ready = "";
    root.style.position = "relative";
    if (root.querySelector(".flow")) sequences(root);
    for (const box of root.querySelectorAll(".find")) find(box);
    for (const picture of root.querySelectorAll(".graph")) graph(picture);
  }
})();
