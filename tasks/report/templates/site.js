// What a page does in the browser: tables that sort, search and download, charts that answer the mouse, light and dark.
// Texts come from logs: they are only ever set as text, never as HTML.
"use strict";
(() => {
  const palette = "PALETTE", rowsAPage = 20, body = document.body, main = document.getElementById("body");
  const drawn = new Map(); // chart holders that are drawn, with their figures
  const found = JSON.parse(document.getElementById("data").textContent);

  function make(tag, attributes = {}, ...inner) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value);
    }
    element.append(...inner.filter((part) => part !== null && part !== undefined && part !== ""));
    return element;
  }
  const isSafe = (href) => /^[\w.-]*\.html(#.*)?$|^#/.test(href);

  // a sentence whose commands, in backticks, are buttons that copy them
  const command = (words) => make("code", { role: "button", tabindex: "0", class: "command", title: "copy" }, words);
  function prose(words) {
    const cut = String(words ?? "").split("`");
    if (cut.length % 2 === 0) cut.push(cut.splice(-2).join("`")); // the last one stands for itself
    return cut.map((part, at) => (at % 2 ? command(part) : part)).filter(Boolean);
  }
  async function copy(event) {
    const button = event.target.closest(".command");
    if (!button || (event.key && event.key !== "Enter")) return;
    try {
      await navigator.clipboard.writeText(button.textContent);
      button.dataset.told = "copied";
    } catch { // a page from elsewhere may not: then the command is at least marked
      getSelection().selectAllChildren(button);
      button.dataset.told = "Ctrl-C copies";
    }
    setTimeout(() => delete button.dataset.told, 1500);
  }
  for (const kind of ["click", "keydown"]) document.addEventListener(kind, copy);

  // the pages of the site
  const here = location.pathname.split("/").pop();
  document.getElementById("pages").append(...(window.whorlNav || []).filter((link) => isSafe(link.href)).map((link) => make("a",
    { href: link.href, "aria-current": here === link.href || (link.href !== "index.html" && here.startsWith(link.href.replace(".html", "-"))) ? "page" : null }, link.title)));

  // every job, workload and node of the site by its name; names are read when somebody looks for one
  function showSearch(sources) {
    const names = [], most = 12, hits = make("ul", { class: "hits" });
    const input = make("input", { type: "search", placeholder: "find a job, workload, node", "aria-label": "find a job, workload or node" });
    const update = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = words.length ? names.filter(([name]) => words.every((word) => name.toLowerCase().includes(word))) : [];
      hits.replaceChildren(...fits.slice(0, most).map(([name, page]) => make("li", {}, make("a", { href: `${page}#${encodeURIComponent(name)}` }, name))),
        fits.length > most ? make("li", { class: "muted" }, `and ${(fits.length - most).toLocaleString("en")} more`) : "",
        words.length && !fits.length ? make("li", { class: "muted" }, "nothing has this name") : "");
    };
    window.whorlNames = (page, more) => { if (isSafe(page)) names.push(...more.map((name) => [name, page])); update(); };
    const load = () => document.head.append(...sources.splice(0).map((src) => make("script", { src })));
    input.addEventListener("focus", load);
    input.addEventListener("input", () => { load(); update(); });
    hits.addEventListener("click", () => { input.value = ""; update(); });
    document.getElementById("theme").before(make("div", { class: "find", role: "search" }, input, hits));
  }
  if ((window.whorlItems || []).length) showSearch([...window.whorlItems]);

  // theme
  const store = { get: () => { try { return localStorage.getItem("whorl-theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("whorl-theme", value); } catch { /* a file may have no store */ } } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const scheme = () => store.get() || (system.matches ? "dark" : "light");
  function applyTheme() {
    document.documentElement.dataset.theme = scheme();
    for (const [holder, figure] of drawn) draw(holder, figure);
  }
  document.documentElement.dataset.theme = scheme();
  document.getElementById("theme").addEventListener("click", () => {
    store.set(scheme() === "dark" ? "light" : "dark");
    applyTheme();
  });
  system.addEventListener("change", applyTheme);

  // charts
  function themed(spec, name) {
    let text = JSON.stringify(spec);
    const colours = palette[name];
    for (const [key, colour] of Object.entries(colours)) text = text.split(`"@${key}"`).join(`"${colour}"`);
    return [JSON.parse(text), colours];
  }
  function widen(node, width) {
    if (Array.isArray(node)) return node.forEach((one) => widen(one, width));
    if (node === null || typeof node !== "object") return;
    if (typeof node.width === "number" && (node.mark || node.layer)) node.width = Math.min(width, node.usual || 900);
    for (const [key, value] of Object.entries(node)) if (!["data", "datasets", "encoding"].includes(key)) widen(value, width);
  }
  function isMap(spec) { return JSON.stringify(spec).includes('"type":"rect"'); }
  async function draw(holder, figure, room = 90, tries = 0) {
    const [spec, colours] = themed(figure.spec, scheme());
    const space = holder.clientWidth;
    if (!space) return;
    if (figure.rows) spec.datasets = { rows: figure.rows.map((row) => Object.fromEntries(figure.columns.map((c, i) => [c, row[i]]))) };
    if (!isMap(spec)) widen(spec, Math.max(140, Math.min(space, 860) - room));
    const words = { labelColor: colours.ink, titleColor: colours.ink, labelLimit: Math.min(220, space * 0.36), titleFontWeight: 500 };
    spec.config = { background: colours.paper, font: getComputedStyle(body).fontFamily, view: { stroke: null },
      axis: { ...words, gridColor: colours.grid, domainColor: colours.muted, tickColor: colours.muted },
      header: { ...words, labelLimit: space - 40 }, legend: { ...words, columns: space < 500 ? 1 : 3 }, text: { color: colours.ink } };
    drawn.set(holder, figure);
    const { view } = await vegaEmbed(holder, spec, { actions: false, ast: true, renderer: "svg", tooltip: { theme: scheme() } });
    view.addEventListener("click", (_, mark) => { if (mark && mark.datum) choose(mark.datum); });
    const svg = holder.querySelector("svg");
    if (!svg) return;
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${figure.title}. ${figure.evidence}`);
    const over = Number(svg.getAttribute("width")) - space;
    if (over > 1 && tries < 2 && !isMap(spec)) await draw(holder, figure, room + over + 4, tries + 1);
  }
  // a mark that is chosen: the list of this page that names it is searched for it
  let parts = [];
  function choose(datum) {
    const names = ["node", "called", "job", "run"].map((key) => datum[key]).filter((name) => typeof name === "string");
    let first = true;
    for (const part of parts) for (const table of part.tables || []) {
      const cell = table.list && table.rows.flat().map(text).find((one) => names.some((name) => [one, `${one} (tied)`].includes(name) || name.startsWith(`${one} · `)));
      if (!cell) continue;
      open(part.id, first);
      first = false;
      const input = document.querySelector(`[data-list="${table.list}"] input`);
      input.value = cell;
      input.dispatchEvent(new Event("input"));
    }
  }
  let resized = 0;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(applyTheme, 200); });
  const seen = "IntersectionObserver" in window ? new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target, entry.target.figure);
  }, { rootMargin: "300px" }) : null;

  function shownNumber(key, value) {
    if (value === null || value === undefined) return "–";
    if (key.endsWith("_at")) return new Date(value).toISOString().slice(0, 16).replace("T", " ");
    return String(value);
  }
  function numbersOf(figure) {
    if (figure.rows) return [[figure.columns, figure.rows]];
    return Object.values(figure.spec.datasets || {}).filter((rows) => rows.length).map((rows) => {
      const keys = Object.keys(rows[0]);
      return [keys, rows.map((row) => keys.map((key) => row[key]))];
    });
  }
  function showFigure(figure, isAlone) {
    if (figure.use) figure.spec = found.specs[figure.use];
    const holder = make("div", { class: "chart" });
    const element = make("figure", {}, isAlone ? "" : make("h3", {}, figure.title), make("p", {}, figure.words || ""));
    if (!figure.spec) return element;
    holder.figure = figure;
    element.append(holder, make("figcaption", {}, figure.evidence || ""));
    const data = make("details", { class: "data" }, make("summary", { title: "Ctrl and the wheel zoom, the mouse drags, a double click goes back" }, "The numbers of this chart"));
    data.addEventListener("toggle", () => {
      if (!data.open || data.childElementCount > 1) return;
      for (const [keys, rows] of numbersOf(figure)) {
        const columns = keys.map((key, i) => ({ key, title: key.replaceAll("_", " "), num: rows.some((row) => typeof row[i] === "number") }));
        data.append(showTable({ columns, rows: rows.map((row) => row.map((value, i) => typeof value === "number"
          ? [shownNumber(keys[i], value), value] : String(value ?? "–"))) }, figure.name));
      }
    });
    element.append(data);
    if (seen) seen.observe(holder); else addEventListener("load", () => draw(holder, figure));
    return element;
  }

  // tables
  const text = (cell) => (Array.isArray(cell) ? cell[0] : cell);
  const raw = (cell) => (Array.isArray(cell) && cell[1] !== null && cell[1] !== undefined ? cell[1] : null);
  function showCell(cell, column) {
    const [words, , href, notes, isMarked] = Array.isArray(cell) ? cell : [cell];
    const isTime = /^\d{4}-\d\d-\d\d \d\d:\d\d$/.test(words);
    let inner = isMarked ? make("strong", {}, words) : column.key === "command" ? command(words) : words;
    if (href && isSafe(href)) inner = make("a", { href }, words);
    return make("td", { class: column.num ? "num" : isTime ? "time" : String(words).length > 60 ? "long" : null }, inner, ...(notes || []).map((note) => make("small", {}, note)));
  }
  function asCsv(table) {
    const field = (value) => {
      const words = String(value ?? "");
      const safe = /^[=+\-@\t\r]/.test(words) && Number.isNaN(Number(words)) ? `'${words}` : words; // no formulas
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const lines = [table.columns.map((column) => field(column.key))];
    for (const row of table.rows) lines.push(row.map((cell, i) => field(table.columns[i].num && raw(cell) !== null ? raw(cell) : text(cell))));
    return lines.map((line) => line.join(",")).join("\r\n");
  }
  function download(name, words) {
    const link = make("a", { href: URL.createObjectURL(new Blob([words], { type: "text/csv" })), download: name });
    body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  function hashState() {
    const [id, query] = location.hash.slice(1).split("?");
    return [decodeURIComponent(id), new URLSearchParams(query || "")];
  }
  function showTable(table, name) {
    const isLong = table.rows.length > rowsAPage;
    const [id, asked] = table.list ? hashState() : ["", new URLSearchParams()];
    const state = { q: "", by: null, down: false, page: 0 };
    if (table.list && id === table.list) {
      state.q = asked.get("q") || "";
      const at = table.columns.findIndex((column) => column.key === asked.get("sort"));
      if (at >= 0) Object.assign(state, { by: at, down: asked.has("down") });
    }
    const haystack = isLong || table.list ? table.rows.map((row) => row.filter((_, at) => !table.columns[at].num).map(text).join("\u0001").toLowerCase()) : null;
    const input = make("input", { type: "search", placeholder: "search", "aria-label": `search ${table.title || name}`, value: state.q });
    const status = make("span", { class: "muted", role: "status" });
    const back = make("button", { type: "button" }, "‹ before"), next = make("button", { type: "button" }, "next ›");
    const csv = make("button", { type: "button", class: "csv" }, "CSV");
    const tbody = make("tbody");
    const heads = table.columns.map((column, at) => {
      const button = make("button", { type: "button", title: column.means }, column.title);
      button.addEventListener("click", () => {
        const first = column.num;
        if (state.by === at && state.down !== first) Object.assign(state, { by: null, down: false });
        else Object.assign(state, { down: state.by === at ? !state.down : first, by: at });
        state.page = 0;
        update(true);
      });
      return make("th", { scope: "col", class: column.num ? "num" : null }, button);
    });
    function chosen() {
      const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
      let rows = table.rows.map((_, at) => at);
      if (words.length && haystack) rows = rows.filter((at) => words.every((word) => haystack[at].includes(word)));
      if (state.by === null) return rows;
      const sign = state.down ? -1 : 1, by = state.by, isNumber = table.columns[by].num;
      const keys = table.rows.map((row) => (isNumber ? raw(row[by]) : text(row[by])));
      const order = new Intl.Collator("en", { numeric: true });
      return rows.sort((a, b) => {
        if (keys[a] === null || keys[b] === null) return (keys[a] === null) - (keys[b] === null) || a - b;
        return sign * (isNumber ? keys[a] - keys[b] : order.compare(keys[a], keys[b])) || a - b;
      });
    }
    function update(isAsked) {
      const rows = chosen(), pages = Math.max(1, Math.ceil(rows.length / rowsAPage));
      state.page = Math.min(state.page, pages - 1);
      const first = state.page * rowsAPage, part = rows.slice(first, first + rowsAPage);
      tbody.replaceChildren(...part.map((at) => make("tr", {}, ...table.rows[at].map((cell, i) => showCell(cell, table.columns[i])))));
      heads.forEach((head, at) => head.setAttribute("aria-sort", state.by !== at ? "none" : state.down ? "descending" : "ascending"));
      status.textContent = rows.length ? `${(first + 1).toLocaleString("en")}–${(first + part.length).toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "nothing fits";
      back.disabled = !state.page;
      next.disabled = state.page >= pages - 1;
      if (isAsked && table.list) {
        const query = new URLSearchParams();
        if (state.q) query.set("q", state.q);
        if (state.by !== null) query.set("sort", table.columns[state.by].key);
        if (state.by !== null && state.down) query.set("down", "");
        const words = query.toString().replace(/=(&|$)/g, "$1");
        try { history.replaceState(null, "", `#${encodeURIComponent(table.list)}${words ? `?${words}` : ""}`); } catch { /* a file may refuse */ }
      }
    }
    input.addEventListener("input", () => { state.q = input.value; state.page = 0; update(true); });
    back.addEventListener("click", () => { state.page -= 1; update(); });
    next.addEventListener("click", () => { state.page += 1; update(); });
    csv.addEventListener("click", () => download(`${table.list || name || "table"}.csv`, asCsv(table)));
    update();
    const hasTools = isLong || table.list;
    return make("div", { class: "table", id: table.list || null, "data-list": table.list || null },
      table.title ? make("h3", {}, table.title) : "", table.words ? make("p", {}, table.words) : "",
      hasTools ? make("div", { class: "tools" }, input, status, isLong ? back : "", isLong ? next : "", csv) : "",
      make("div", { class: "scroll", tabindex: isLong ? "0" : null }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), tbody)),
      table.more ? make("p", { class: "muted" }, table.more) : "");
  }

  // parts of a result
  function showSection(part) {
    const inner = make("div");
    let isFilled = false;
    const fill = () => {
      if (isFilled) return;
      isFilled = true;
      inner.append(...[part.words].filter(Boolean).map((words) => make("p", {}, ...prose(words))));
      if (part.lines) inner.append(make("ul", {}, ...part.lines.map((line) => make("li", {}, line))));
      const isAlone = (part.figures || []).length === 1 && part.figures[0].title === part.title;
      for (const one of part.figures || []) inner.append(showFigure(one, isAlone));
      for (const one of part.tables || []) inner.append(showTable(one, part.id));
      if (part.evidence) inner.append(make("p", { class: "evidence" }, part.evidence));
    };
    const element = make("details", { class: "part", id: part.id, open: Boolean(part.open) },
      make("summary", {}, make("h2", {}, part.title), part.empty ? make("span", { class: "muted" }, "nothing yet") : ""), inner);
    element.fill = fill;
    element.addEventListener("toggle", () => { if (element.open) fill(); });
    if (part.open) fill();
    return element;
  }
  function showContents(sections) {
    document.getElementById("contents").replaceChildren(...sections.map((part) => {
      const link = make("a", { href: `#${part.id}`, class: part.empty ? "empty" : null }, part.title);
      link.addEventListener("click", () => { open(part.id); });
      return link;
    }));
  }
  function open(id, isSeen = true) {
    const element = id && document.getElementById(id);
    if (!element) return;
    const part = element.closest("details.part");
    if (part) { part.fill(); part.open = true; }
    if (isSeen) element.scrollIntoView();
  }
  function showSections(sections) {
    parts = sections;
    main.append(...sections.map(showSection));
    showContents(sections);
  }
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details.part")) { part.fill(); part.open = true; }
    for (const holder of document.querySelectorAll(".chart")) if (!drawn.has(holder)) draw(holder, holder.figure);
  });

  // an item reads its own part by #id; a file may not fetch, so parts are scripts
  function partOf(id, n) {
    let hash = 0x811c9dc5;
    for (const byte of new TextEncoder().encode(id)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
    return hash % n;
  }
  const items = {};
  window.whorlPart = (number, found) => { items[number] = found; };
  function showItem() {
    const [id] = hashState();
    const number = partOf(id, found.parts);
    const show = () => {
      const item = (items[number] || {})[id];
      const head = document.querySelector("h1"), at = document.getElementById("main");
      for (const old of at.querySelectorAll(".answer, .certainty, .reasons, .facts, .action")) old.remove();
      main.replaceChildren();
      drawn.clear();
      head.textContent = item ? item.title : id ? `${id}: not in this report` : found.title;
      document.title = head.textContent;
      if (!item) return main.append(make("p", {}, found.nothing));
      const before = [make("p", { class: "answer", "data-state": item.state }, item.answer)];
      if (item.certainty) before.push(make("p", { class: "certainty" }, item.certainty));
      if (item.reasons) before.push(make("ul", { class: "reasons" }, ...item.reasons.map((line) => make("li", {}, line))));
      if (item.action) before.push(make("p", { class: "action" }, ...prose(item.action)));
      if (item.facts) before.push(make("dl", { class: "facts" }, ...item.facts.map((fact) => make("div", { "data-key": fact.key },
        make("dd", {}, fact.text), make("dt", {}, fact.words)))));
      main.before(...before);
      showSections(item.sections);
      return undefined;
    };
    if (items[number]) { show(); return; }
    const script = make("script", { src: `${body.dataset.parts}/${number}.js` });
    script.addEventListener("load", show);
    script.addEventListener("error", show);
    document.head.append(script);
  }

  if (body.dataset.kind === "item") {
    showItem();
    addEventListener("hashchange", showItem);
  } else {
    if (found.cards) {
      main.append(make("div", { class: "cards" }, ...found.cards.map((card) => make("section", { class: "card", "data-state": card.state },
        make("h2", {}, card.href && isSafe(card.href) ? make("a", { href: card.href }, card.title) : card.title),
        make("p", { class: "says" }, card.answer), card.fact ? make("p", { "data-key": card.fact.key }, `${card.fact.text} ${card.fact.words}`) : "",
        card.certainty ? make("p", { class: "muted" }, card.certainty) : "", card.action ? make("p", { class: "action" }, ...prose(card.action)) : ""))));
    }
    showSections(found.sections);
    const follow = () => { const [id] = hashState(); if (id) open(id); };
    follow();
    addEventListener("hashchange", follow);
  }
  body.dataset.ready = "yes";
})();
