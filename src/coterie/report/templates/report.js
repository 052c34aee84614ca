// Makes the cards of learners and their table on demand, names the cells of the heat map, switches the theme.
(() => {
  "use strict";
  const store = JSON.parse(document.getElementById("store").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const make = (name, look, ...inside) => {
    const made = document.createElement(name);
    if (look) made.className = look;
    made.append(...inside);
    return made;
  };

  // The theme: the reader's choice, else the system's.
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const button = byId("theme");
  const remembered = (value) => {
    // A page in a sandboxed frame has no storage.
    try {
      if (value) localStorage.setItem("coterie-theme", value);
      return localStorage.getItem("coterie-theme");
    } catch {
      return null;
    }
  };
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const showTheme = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", button.textContent + " theme");
  };
  const choice = remembered();
  if (choice === "dark" || choice === "light") root.dataset.theme = choice;
  showTheme();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered(root.dataset.theme);
    showTheme();
  });
  system.addEventListener("change", showTheme);

  // The cards. Columns of a row, as cards.py writes them.
  const [NAME, COTERIE, VERDICT, REASON, GAIN, INTERVAL, PLACES, ERRORS, ROWS, TAKEN, SURE, NEXT, MODEL, LUCK, USED, CUT] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
  ];
  const cards = store.cards;
  const MOST_NAMED = 8;
  const LUCKY = "Measured on its rows alone, the errors point the other way; the gain weighs the evidence of all.";
  const track = (row) => {
    const line = make("span", "track");
    line.setAttribute("aria-hidden", "true");
    const part = (look, left, width) => {
      const made = make("i", look);
      made.style.left = left + "%";
      if (width !== undefined) made.style.width = width + "%";
      line.append(made);
    };
    const [at, low, high] = row[PLACES];
    part("zero", cards.zero);
    if (low !== null) part(row[CUT] ? "interval cut" : "interval", low, high - low);
    part("point", at);
    return line;
  };
  const company = (row) => {
    if (row[COTERIE] < 0) return "no coterie fits it";
    const others = (store.members[row[COTERIE]] || []).filter((name) => name !== row[NAME]);
    if (!others.length) {
      // The first source is its own model.
      const sources = cards.takes.filter((_, place) => place && row[TAKEN] && row[TAKEN][place]);
      return `${sources.join(" and ") || "nobody"}: it has a coterie of its own`;
    }
    const rest = others.length - MOST_NAMED;
    const names = others.slice(0, MOST_NAMED).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
    return `coterie ${row[COTERIE]}: ${names}`;
  };
  const facts = (row) => {
    const list = make("dl");
    const add = (term, ...said) => list.append(make("div", "", make("dt", "", term), make("dd", "", ...said)));
    if (cards.measured && row[ERRORS].some((error) => error !== "\u2013")) {
      const [alone, others, all] = row[ERRORS];
      const unit = cards.error + (cards.unit ? ", " + cards.unit : "");
      const errors = `alone ${alone}, with others ${others}, with all ${all}`;
      add(`Error on rows not seen (${unit})`, errors, ...(row[LUCK] ? [make("p", "quiet", LUCKY)] : []));
    }
    const single = (store.members[row[COTERIE]] || []).length === 1;
    add(cards.clear || single ? "Learns with" : "Grouped with, though not clearly", company(row));
    if (row[TAKEN]) {
      const bar = make("span", "bar-of");
      bar.setAttribute("aria-hidden", "true");
      const said = [];
      row[TAKEN].forEach((share, place) => {
        if (!share) return;
        const part = make("i");
        part.style.width = share + "%";
        part.style.background = store.greys[place];
        bar.append(part);
        said.push(`${share}% from ${cards.takes[place]}`);
      });
      add("Takes", said.join(", "), bar);
    }
    if (row[SURE] !== null) {
      const next = row[NEXT] >= 0 ? `; the next best is coterie ${row[NEXT]}` : "";
      add("How sure its coterie is", row[SURE] + next);
    }
    if (row[ROWS] !== null) add("Rows", row[ROWS] + (row[MODEL] ? `; own model ${row[MODEL]}` : ""));
    return list;
  };
  const card = (row) => {
    const kind = cards.kinds[row[VERDICT]] || "";
    const made = make("article", "card " + kind);
    made.append(make("h3", "", row[NAME]));
    if (row[VERDICT]) made.append(make("p", "chip", row[VERDICT]));
    if (cards.measured && row[PLACES][0] !== null) {
      made.append(make("p", "big", row[GAIN]), track(row));
    }
    if (row[REASON]) made.append(make("p", "", row[REASON]));
    if (row[INTERVAL] && row[PLACES][0] !== null) {
      const [low, high] = row[INTERVAL];
      made.append(make("p", "quiet", `With a probability of 90% the gain is between ${low} and ${high}.`));
    }
    if (row[USED]) made.append(make("p", "", row[USED]));
    made.append(facts(row));
    return made;
  };
  const FEW = 3;
  const shelf = byId("cards");
  const [search, found, more] = ["search", "found", "more"].map(byId);
  // Accents and umlauts need not be typed.
  const plain = (text) =>
    text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "").replaceAll("\u00df", "ss");
  const names = cards.rows.map((row) => plain(row[NAME]));
  let matching = cards.rows;
  let shown = FEW;
  const showCards = () => {
    shelf.replaceChildren(...matching.slice(0, shown).map(card));
    if (!search) return;
    const count = Math.min(shown, matching.length);
    found.textContent = `${count} of ${cards.rows.length} shown` + (matching.length ? "" : ": no such name");
    more.hidden = matching.length <= shown;
  };
  const find = () => {
    const words = plain(search.value).split(/\s+/).filter(Boolean);
    matching = cards.rows.filter((_, place) => words.every((word) => names[place].includes(word)));
    // An exact name stands first.
    const whole = plain(search.value.trim());
    matching.sort((a, b) => (plain(b[NAME]) === whole) - (plain(a[NAME]) === whole));
    shown = FEW;
    showCards();
  };
  if (search) {
    search.addEventListener("input", find);
    more.addEventListener("click", () => {
      shown += 8 * FEW;
      showCards();
    });
    for (const each of document.querySelectorAll("[data-learner]")) {
      each.addEventListener("click", () => {
        search.value = cards.rows[each.dataset.learner][NAME];
        find();
        byId("learners").scrollIntoView();
        search.focus({ preventScroll: true });
      });
    }
  }
  showCards();

  // The table of all learners, made when it is opened.
  const HEADS = [
    ["Learner", (row) => row[NAME]],
    ["Coterie", (row) => (row[COTERIE] < 0 ? "\u2013" : String(row[COTERIE]))],
    ["Verdict", (row) => row[VERDICT], true],
    ["Gain", (row) => row[GAIN], true],
    ["Interval", (row) => (row[INTERVAL] ? row[INTERVAL].join(" to ") : "\u2013"), true],
    ["Error alone", (row) => row[ERRORS][0], true],
    ["With others", (row) => row[ERRORS][1], true],
    ["With all", (row) => row[ERRORS][2], true],
    ["Sure", (row) => row[SURE] || "\u2013", true],
    ["Rows", (row) => row[ROWS], true],
    ["Model", (row) => row[MODEL], true],
  ];
  const heads = HEADS.filter(([, , gains]) => !gains || cards.measured);
  const value = (text) => parseFloat(text.replaceAll(",", "").replace("\u2212", "-").replace("< ", ""));
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const fillTable = (scroller) => {
    const table = make("table", "all");
    const head = make("tr");
    const body = make("tbody");
    const rows = cards.rows.map((row) => {
      const texts = heads.map(([, say]) => say(row));
      const made = make("tr", "", make("th", "", texts[0]), ...texts.slice(1).map((text) => make("td", "", text)));
      made.firstChild.scope = "row";
      return { made, texts };
    });
    body.append(...rows.map((row) => row.made));
    heads.forEach(([name], column) => {
      const click = make("button", "", name);
      click.type = "button";
      const cell = make("th", "", click);
      cell.scope = "col";
      cell.setAttribute("aria-sort", "none");
      click.addEventListener("click", () => {
        const up = cell.getAttribute("aria-sort") === "descending" || (column === 0 && cell.ariaSort === "none");
        for (const other of head.cells) other.setAttribute("aria-sort", "none");
        cell.setAttribute("aria-sort", up ? "ascending" : "descending");
        const compare = ({ texts: one }, { texts: other }) => {
          const [a, b] = [value(one[column]), value(other[column])];
          // What is not known stands last, whichever way.
          const unknown = (one[column] === "\u2013") - (other[column] === "\u2013");
          if (unknown) return unknown;
          const order = column > 0 && !isNaN(a) && !isNaN(b) ? a - b : collator.compare(one[column], other[column]);
          return up ? order : -order;
        };
        body.append(...rows.sort(compare).map((row) => row.made));
      });
      head.append(cell);
    });
    table.append(make("thead", "", head), body);
    scroller.replaceChildren(table);
  };
  const table = byId("table");
  if (table) {
    table.addEventListener("toggle", () => {
      const scroller = table.querySelector(".scroll");
      if (table.open && !scroller.firstChild) fillTable(scroller);
    });
  }

  // The cells of the heat map: by pointer, or by arrow keys.
  const image = byId("cells");
  if (image && store.heat) {
    const { learners, cells, unit } = store.heat;
    const n = learners.length;
    const svg = image.ownerSVGElement;
    svg.tabIndex = 0;
    let [row, column] = [0, 0];
    const tell = () => {
      const error = cells[row][column];
      const said = error === null ? "not known" : String(error) + unit;
      byId("cell").textContent = `Model of ${learners[row]} on the rows of ${learners[column]}: ${said}.`;
    };
    const within = (place) => Math.min(Math.max(place, 0), n - 1);
    svg.addEventListener("pointermove", (event) => {
      const box = image.getBoundingClientRect();
      row = within(Math.floor(((event.clientY - box.top) / box.height) * n));
      column = within(Math.floor(((event.clientX - box.left) / box.width) * n));
      tell();
    });
    const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    svg.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step) return;
      event.preventDefault();
      [row, column] = [within(row + step[0]), within(column + step[1])];
      tell();
    });
  }

  // A link to a folded part opens it.
  const openTarget = () => {
    const part = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
    if (part && part.tagName === "DETAILS") part.open = true;
  };
  window.addEventListener("hashchange", openTarget);
  openTarget();
  root.dataset.ready = "yes";
})();
