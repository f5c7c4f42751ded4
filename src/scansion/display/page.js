// Interaction only: everything that matters is in the page without it. Text enters as text, never as HTML.
(() => {
  "use strict";
  const make = (tag, look, ...content) => {
    const node = document.createElement(tag);
    if (look) node.className = look;
    node.append(...content);
    return node;
  };
  const percent = (p) => (p >= 0.0005 ? p.toFixed(3) : p.toExponential(1));

  // ---- sequences ------------------------------------------------------------------------------------------------
  class SequenceView {
    constructor(root, entry) {
      this.root = root;
      this.flow = entry.querySelector(".flow");
      this.data = JSON.parse(entry.querySelector("script.data").textContent);
      this.cells = [...this.flow.children];
      this.bars = new Map(); // "level.number" -> the pieces of a segment
      for (const bar of this.flow.querySelectorAll(".bar[data-s]")) {
        const known = this.bars.get(bar.dataset.s);
        if (known) known.push(bar);
        else this.bars.set(bar.dataset.s, [bar]);
      }
      this.tip = make("div", "tip");
      this.tip.hidden = true;
      this.tip.setAttribute("aria-hidden", "true"); // the segment's own label says the same
      root.append(this.tip);
      this.shown = null;
      const over = (event) => event.target.closest(".bar[data-s]");
      this.flow.addEventListener("mouseover", (event) => {
        const bar = over(event);
        if (bar) this.show(bar.dataset.s, bar);
        else this.hide();
      });
      this.flow.addEventListener("mouseleave", () => this.hide());
      this.flow.addEventListener("focusin", (event) => {
        const bar = over(event);
        if (bar) this.show(bar.dataset.s, bar);
      });
      this.flow.addEventListener("focusout", () => this.hide());
      this.flow.addEventListener("click", (event) => {
        const bar = over(event);
        if (bar) this.go(bar.dataset.s);
      });
      this.flow.addEventListener("keydown", (event) => this.key(event));
      if (window.ResizeObserver) new ResizeObserver(() => this.continued()).observe(this.flow);
      else this.continued();
      this.heat(entry);
    }

    // a segment that goes on in the next line says its name again
    continued() {
      let above = null;
      const starts = this.cells.filter((cell) => {
        const lower = above !== null && cell.offsetTop > above;
        above = cell.offsetTop;
        return lower;
      });
      for (const bar of this.flow.querySelectorAll(".again")) bar.classList.remove("again");
      for (const cell of starts) {
        for (const bar of cell.querySelectorAll(".bar[data-s]:not(.first)")) {
          const [level, number] = bar.dataset.s.split(".").map(Number);
          bar.dataset.again = this.data.labels[this.data.levels[level][number][2]];
          bar.classList.add("again");
        }
      }
    }

    go(key) {
      const bar = this.bars.get(key)[0];
      const before = this.flow.querySelector('[tabindex="0"]');
      if (before) before.tabIndex = -1;
      bar.tabIndex = 0;
      bar.focus();
    }

    key(event) {
      const bar = event.target.closest(".bar[data-s]");
      if (!bar) return;
      const [level, number] = bar.dataset.s.split(".").map(Number);
      const levels = this.data.levels;
      let [to, place] = [level, number];
      const near = (d) => {
        const start = levels[level][number][0];
        const found = levels[d].findIndex((span) => span[1] > start);
        return found < 0 ? levels[d].length - 1 : found;
      };
      const step = (by) => {
        for (let d = level + by; d >= 0 && d < levels.length; d += by) if (levels[d].length) return d;
        return level;
      };
      switch (event.key) {
        case "ArrowRight": place = Math.min(number + 1, levels[level].length - 1); break;
        case "ArrowLeft": place = Math.max(number - 1, 0); break;
        case "Home": place = 0; break;
        case "End": place = levels[level].length - 1; break;
        // the root is the lowest bar
        case "ArrowUp": to = step(1); place = to === level ? number : near(to); break;
        case "ArrowDown": to = step(-1); place = to === level ? number : near(to); break;
        case "Escape": this.hide(); return;
        default: return;
      }
      event.preventDefault();
      this.go(`${to}.${place}`);
    }

    chip(label, small) {
      const chip = make("span", `chip ${this.data.looks[label]}`, this.data.labels[label]);
      if (small) chip.append(make("small", "", small));
      return chip;
    }

    show(key, at) {
      if (this.shown !== key) {
        this.mark(false);
        this.shown = key;
        this.mark(true);
        this.tip.replaceChildren(...this.about(key));
      }
      this.tip.hidden = false;
      const frame = this.root.getBoundingClientRect();
      const box = at.getBoundingClientRect();
      const left = Math.min(box.left - frame.left, this.root.clientWidth - this.tip.offsetWidth - 8);
      this.tip.style.left = `${Math.max(8, left)}px`;
      const below = box.bottom + this.tip.offsetHeight + 12 < window.innerHeight || box.top < this.tip.offsetHeight + 12;
      this.tip.style.top = `${below ? box.bottom - frame.top + 8 : box.top - frame.top - this.tip.offsetHeight - 8}px`;
    }

    hide() {
      this.mark(false);
      this.shown = null;
      this.tip.hidden = true;
    }

    mark(on) {
      for (const bar of this.bars.get(this.shown) || []) bar.classList.toggle("on", on);
    }

    about(key) {
      const [level, number] = key.split(".").map(Number);
      const [start, stop, label] = this.data.levels[level][number];
      const where = stop === start + 1 ? `token ${start}` : `tokens ${start}:${stop}`;
      const head = make("div", "", this.chip(label), ` ${this.data.names[level]}${this.data.names[level] ? ", " : ""}${where}`);
      const words = this.cells.slice(start, Math.min(stop, start + 40)).map((cell) => cell.firstChild.textContent).join(" ");
      const text = words.length > 160 || stop > start + 40 ? `${words.slice(0, 159)}\u2026` : words;
      const parts = [head, make("p", "quote", text)];
      if (level === this.data.scored) {
        const mass = new Map();
        for (let t = start; t < stop; t++) {
          const row = this.data.likely[t];
          for (let i = 0; i < row.length; i += 2) mass.set(row[i], (mass.get(row[i]) || 0) + row[i + 1] / (stop - start));
        }
        const rows = [...mass].sort((a, b) => b[1] - a[1]).slice(0, 4);
        parts.push(this.list(rows.map(([y, p]) => [p, [this.chip(y)]])));
      }
      const others = [];
      for (const [p, levels] of this.data.alternatives) {
        const here = (levels[level] || []).filter((span) => span[0] < stop && span[1] > start);
        if (here.length === 1 && here[0][0] === start && here[0][1] === stop && here[0][2] === label) continue;
        const chips = here.slice(0, 8).map((span) => this.chip(span[2], `${span[0]}:${span[1]}`));
        others.push([p, chips.length ? chips : ["nothing here"]]);
      }
      if (others.length) parts.push(make("p", "quiet", "Alternatives"), this.list(others.slice(0, 5)));
      return parts;
    }

    list(rows) {
      const list = make("dl", "");
      for (const [p, content] of rows) {
        const bar = make("i", "");
        bar.style.width = `${100 * p}%`;
        list.append(make("dt", "", percent(p)), make("dd", "", make("span", "meter", bar)), make("dd", "", ...content));
      }
      return list;
    }

    heat(entry) {
      const scroll = entry.querySelector(".heat .scroll");
      if (!scroll) return;
      const width = Number(scroll.dataset.cell);
      const column = scroll.querySelector(".column");
      const readout = entry.querySelector(".readout");
      let at = -1;
      const read = (t) => {
        at = Math.max(0, Math.min(t, this.cells.length - 1));
        column.setAttribute("x", at * width);
        const row = this.data.likely[at];
        const said = [];
        for (let i = 0; i < row.length; i += 2) said.push(`${this.data.labels[row[i]]} ${percent(row[i + 1])}`);
        readout.textContent = `${at}: ${this.cells[at].firstChild.textContent} \u2014 ${said.join(", ")}`;
      };
      scroll.addEventListener("mousemove", (event) => {
        const x = event.clientX - scroll.querySelector("svg").getBoundingClientRect().left;
        const t = Math.floor(x / width);
        if (t !== at && t >= 0 && t < this.cells.length) read(t);
      });
      scroll.addEventListener("keydown", (event) => {
        const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.cells.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        read(to);
        const x = at * width;
        if (x < scroll.scrollLeft) scroll.scrollLeft = x;
        else if (x + width > scroll.scrollLeft + scroll.clientWidth) scroll.scrollLeft = x + width - scroll.clientWidth;
      });
    }
  }

  // ---- reports --------------------------------------------------------------------------------------------------
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
    const ask = (node) => {
      picture.classList.toggle("asked", node !== null);
      for (const edge of edges) edge.classList.toggle("on", node !== null && edge.dataset.ends.split(" ").includes(node));
    };
    for (const node of picture.querySelectorAll(".node")) {
      for (const event of ["mouseenter", "focus"]) node.addEventListener(event, () => ask(node.dataset.n));
      for (const event of ["mouseleave", "blur"]) node.addEventListener(event, () => ask(null));
    }
  };

  for (const root of document.querySelectorAll(".scansion:not([data-ready])")) {
    root.dataset.ready = "";
    root.style.position = "relative";
    for (const entry of root.querySelectorAll(".entry")) if (entry.querySelector(".flow")) new SequenceView(root, entry);
    for (const box of root.querySelectorAll(".find")) find(box);
    for (const picture of root.querySelectorAll(".graph")) graph(picture);
  }
})();
