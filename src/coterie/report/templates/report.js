// Draws the pictures in the page's theme, and lets the table be searched and sorted.
(() => {
  "use strict";
  const store = JSON.parse(document.getElementById("store").textContent);
  const root = document.documentElement;
  const NARROW = 560;

  // The theme: the reader's choice, else the system's.
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const remembered = (value) => {
    // A page in a sandboxed frame has no storage.
    try {
      if (value) localStorage.setItem("coterie-theme", value);
      return localStorage.getItem("coterie-theme");
    } catch {
      return null;
    }
  };
  const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const showTheme = () => {
    const dark = theme() === "dark";
    button.setAttribute("aria-pressed", String(dark));
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Switch to the light theme" : "Switch to the dark theme");
  };

  // Colours are names in the theme; the long lists hold none and are passed on as they are.
  const PASSED_ON = new Set(["x", "y", "z", "text", "customdata"]);
  const coloured = (value, colours) => {
    if (typeof value === "string") return value.startsWith("@") ? colours[value.slice(1)] || value : value;
    if (Array.isArray(value)) return value.map((item) => coloured(item, colours));
    if (value === null || typeof value !== "object") return value;
    const entries = Object.entries(value);
    return Object.fromEntries(
      entries.map(([key, item]) => [key, PASSED_ON.has(key) ? item : coloured(item, colours)]),
    );
  };

  const config = {
    responsive: false,
    displaylogo: false,
    modeBarButtons: [["toImage", "resetScale2d"]],
    displayModeBar: window.matchMedia("(pointer: coarse)").matches ? false : "hover",
    showTips: false,
  };

  const draw = (figure, colours, width) => {
    const place = document.getElementById("figure-" + figure.name);
    const across = width || place.clientWidth;
    const layout = coloured(figure.layout, colours);
    layout.width = across;
    // A finger that scrolls the page must not zoom a picture.
    layout.dragmode = window.matchMedia("(pointer: coarse)").matches ? false : "zoom";
    if (figure.square) {
      const wide = Math.min(across, 820);
      layout.width = wide;
      layout.height = Math.round(Math.min(wide * 0.92, 760));
      if (wide < NARROW) {
        layout.xaxis.showticklabels = layout.yaxis.showticklabels = false;
      }
      place.style.height = layout.height + "px";
    }
    return Plotly.react(place, coloured(figure.data, colours), layout, config);
  };
  // Paper is white, and as wide as the style sheet says.
  const PAPER = { one: 680, several: 330 };
  const drawOnPaper = () => {
    for (const figure of store.figures) {
      const among = document.getElementById("figure-" + figure.name).closest(".pictures");
      draw(figure, store.themes.light, among.classList.contains("several") ? PAPER.several : PAPER.one);
    }
  };
  // One picture at a time, so that the page answers meanwhile; whoever begins anew ends the turn before.
  let turn = 0;
  const drawInTurn = async () => {
    const mine = ++turn;
    // What the turn began with is what it has drawn, whatever has changed meanwhile.
    const [name, width] = [theme(), window.innerWidth];
    delete root.dataset.drawn;
    for (const figure of store.figures) {
      if (mine !== turn) return;
      await draw(figure, store.themes[name]);
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    if (mine !== turn) return;
    root.dataset.drawn = name;
    root.dataset.width = width;
  };

  const choice = remembered();
  if (choice === "dark" || choice === "light") root.dataset.theme = choice;
  showTheme();
  button.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    remembered(root.dataset.theme);
    showTheme();
    drawInTurn();
  });
  system.addEventListener("change", () => {
    showTheme();
    drawInTurn();
  });

  window.addEventListener("beforeprint", drawOnPaper);
  window.addEventListener("afterprint", drawInTurn);
  let known = window.innerWidth;
  let waiting;
  window.addEventListener("resize", () => {
    // A phone's address bar that slides away changes the height only.
    if (window.innerWidth === known) return;
    known = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawInTurn, 120);
  });

  // The table.
  const table = document.getElementById("learners");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...body.rows].map((row) => ({
    row,
    // Cells apart: the end of one and the start of the next make no word.
    text: [...row.cells].map((cell) => cell.textContent).join("\n").toLowerCase(),
    keys: [...row.cells].map((cell) => cell.dataset.sort),
  }));
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const NUMBERS = new Set(["number", "percent", "count", "cluster"]);

  const sortBy = (column) => {
    const head = heads[column];
    const numeric = NUMBERS.has(head.className);
    const was = head.getAttribute("aria-sort");
    // Large numbers and the start of the alphabet are what is looked for first.
    const first = numeric && head.className !== "cluster" ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    const now = was === first ? second : first;
    const sign = now === "ascending" ? 1 : -1;
    const compare = (a, b) => {
      const [one, other] = [a.keys[column], b.keys[column]];
      // What is not known stands last, whichever way.
      if (one === undefined || other === undefined) return (one === undefined) - (other === undefined);
      return sign * (numeric ? Number(one) - Number(other) : collator.compare(one, other));
    };
    rows.sort(compare);
    const sorted = document.createDocumentFragment();
    for (const { row } of rows) sorted.append(row);
    body.append(sorted);
    for (const other of heads) other.setAttribute("aria-sort", other === head ? now : "none");
  };
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => sortBy(column)));

  const search = document.getElementById("search");
  const found = document.getElementById("found");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { row, text } of rows) {
      const match = words.every((word) => text.includes(word));
      row.hidden = !match;
      count += match;
    }
    found.textContent = `${count} of ${rows.length}`;
  });

  drawInTurn();
})();
