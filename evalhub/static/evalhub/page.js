// What a page does beyond links and forms; without it everything is still there.

// A slider tells its value while it moves.
document.addEventListener("input", (event) => {
  const told = event.target.type === "range" && event.target.parentElement.querySelector("output");
  if (told) told.value = event.target.value;
});

// A button that copies the text of the element it names.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copies]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent.trim());
  button.textContent = "Copied";
});

// Whoever leaves while a file is sent or read is asked first. htmx sends the forms with files; another script says that it
// does by data-busy.
const sends = (element) => element.matches?.("form[hx-encoding='multipart/form-data']");
document.addEventListener("htmx:beforeRequest", ({ target }) => {
  if (sends(target)) target.dataset.busy = "sending";
});
// What the answer leads to may be another page.
for (const ending of ["htmx:beforeOnLoad", "htmx:sendError", "htmx:abort", "htmx:timeout"]) {
  document.addEventListener(ending, ({ target }) => {
    if (sends(target)) delete target.dataset.busy;
  });
}
addEventListener("beforeunload", (event) => {
  if (document.querySelector("form[data-busy]")) event.preventDefault();
});

// The short name of a new thing is proposed from its name, until it is typed itself.
document.addEventListener("input", ({ target }) => {
  const fields = target.closest("[data-proposes]");
  const short = fields?.querySelector(`#${fields.dataset.proposes}`);
  if (target === short) short.dataset.typed = "yes";
  if (!short || target.name !== "name" || (short.dataset.typed && short.value)) return;
  const plain = target.value.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  short.value = plain.replace(/[^a-z0-9_]+/g, "-").replace(/^[-_]+|-+$/g, "").slice(0, 64);
});

// A field that is refused is shown, where it is folded.
document.addEventListener("invalid", ({ target }) => {
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}, true);

// The title of a deadline also has it in the zone of the browser. Its clock may be wrong: what is left is counted from
// the server's time, with this page's own seconds.
const loaded = performance.now();

function lengthOf(seconds) {
  const parts = [[Math.floor(seconds / 86400), "day"], [Math.floor(seconds / 3600) % 24, "hour"], [Math.floor(seconds / 60) % 60, "minute"]];
  while (parts.length > 1 && !parts[0][0]) parts.shift();
  const told = parts.slice(0, 2).filter(([number]) => number);
  if (told.length) return told.map(([number, unit]) => `${number} ${unit}${number === 1 ? "" : "s"}`).join(" ");
  return `${Math.max(0, Math.floor(seconds))} seconds`;
}

function countDown() {
  for (const place of document.querySelectorAll(".countdown")) {
    const left = (new Date(place.dataset.until) - new Date(place.dataset.now) - (performance.now() - loaded)) / 1000;
    if (left > 0) place.querySelector("b").textContent = lengthOf(left);
    else place.textContent = "Load the page again: the state has changed";
  }
}

for (const time of document.querySelectorAll("time[data-zone]")) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const words = new Date(time.dateTime).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  time.title = `${words}, your time (${zone}); ${time.title}`;
}
if (document.querySelector(".countdown")) setInterval(countDown, 1000);

// Runs that are chosen on a leaderboard stay chosen while it is sorted, filtered and paged. Its form has all of them, as
// boxes of this page and as hidden fields; the address has them too, for whoever loads it again.
const choosing = () => document.getElementById("selection");
const chosen = () => [...choosing().elements].filter((field) => field.name === "select" && (field.checked || field.type === "hidden"));

function hiddenRun(value, name) {
  const field = document.createElement("input");
  Object.assign(field, { type: "hidden", name: "select", value });
  field.dataset.name = name;
  return field;
}

function chosenChip({ value, dataset }) {
  const chip = document.createElement("li");
  const away = document.createElement("a");
  const words = `leave out ${dataset.name}`;
  chip.className = "chip";
  chip.append(Object.assign(document.createElement("span"), { textContent: dataset.name }), away);
  Object.assign(away, { href: "#leaderboard", textContent: "×", title: words, ariaLabel: words });
  away.dataset.untick = value;
  return chip;
}

// What the bar, its buttons and the address say of the chosen runs.
function tellChosen() {
  if (!choosing()) return;
  const runs = chosen();
  const bar = document.getElementById("chosen");
  bar.hidden = runs.length === 0;
  bar.querySelector("b").textContent = runs.length;
  bar.querySelector("ul").replaceChildren(...runs.map(chosenChip));
  bar.querySelector(".full").textContent = runs.length < choosing().dataset.most ? "" : "No more can be selected.";
  for (const button of bar.querySelectorAll("[data-least]")) button.disabled = runs.length < button.dataset.least;
  const address = new URL(location);
  const ids = runs.map((field) => field.value).join(",");
  if (ids === address.searchParams.getAll("select").join(",")) return;
  if (ids) address.searchParams.set("select", ids);
  else address.searchParams.delete("select");
  history.replaceState(history.state, "", address);
}

function choose(runs) {
  if (!choosing()) return;
  const boxes = [...document.querySelectorAll("#board input[type=checkbox][name=select]")];
  for (const field of chosen()) if (field.type === "hidden") field.remove();
  for (const box of boxes) box.checked = runs.has(box.value);
  const here = new Set(boxes.map((box) => box.value));
  for (const [value, name] of runs) if (!here.has(value)) choosing().append(hiddenRun(value, name));
  tellChosen();
}

document.addEventListener("change", ({ target }) => {
  if (!target.matches("#board [name=select]")) return;
  if (chosen().length > choosing().dataset.most) target.checked = false;
  tellChosen();
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-untick]");
  if (!link) return;
  event.preventDefault();
  const gone = link.dataset.untick;
  choose(new Map(chosen().filter(({ value }) => gone !== "all" && gone !== value).map((field) => [field.value, field.dataset.name])));
});

tellChosen();

// The filter completes the name of a parameter, a cost or a measure, wherever in the filter it is typed.
document.addEventListener("input", ({ target }) => {
  if (target.id !== "filter" || !target.list) return;
  const word = target.value.match(/[^\s()"-][^\s()"]*$/)?.[0] ?? "";
  const before = target.value.slice(0, target.value.length - word.length);
  const names = [...document.querySelectorAll("#offered option")].map(({ value }) => value);
  const terms = names.filter((name) => name.includes(":")).map((name) => `${name.replace(/^param:/, "")}=`);
  const near = word ? terms.filter((term) => term.toLowerCase().includes(word.toLowerCase())).slice(0, 20) : [];
  target.list.replaceChildren(...near.map((term) => new Option("", before + term)));
});

// A leaderboard that is asked for again leaves its reader in place: menus stay open, and what has not changed is not
// touched. Who sorts, filters or draws sees the beginning of the table.
let lastBoard, place;

document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (!detail.elt.closest("#leaderboard")) return;
  if (!detail.elt.closest(".paging")) detail.path = detail.path.split("#")[0];
  if (!choosing() || !detail.target.matches("#board, #leaderboard")) return;
  const [address, anchor] = detail.path.split("#");
  const [path, query] = address.split("?");
  const parameters = new URLSearchParams(query);
  const ids = chosen().map((field) => field.value).join(",");
  parameters.delete("select");
  delete detail.parameters.select;
  if (ids) detail.parameters.select = ids;
  detail.path = `${path}?${parameters}${anchor === undefined ? "" : `#${anchor}`}`;
});

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const board = document.getElementById("board");
  if (!board || !detail.target.matches("#board, #leaderboard")) return;
  const byItself = detail.target === board;
  const same = byItself && detail.xhr.response === lastBoard;
  lastBoard = byItself ? detail.xhr.response : undefined;
  if (same) {
    detail.shouldSwap = false;
    return;
  }
  const from = detail.requestConfig.elt.closest("thead, form, .paging");
  const open = [...document.querySelectorAll("#leaderboard :is(details[id][open], .fold:checked)")].map(({ id }) => id);
  const runs = choosing() && new Map(chosen().map((field) => [field.value, field.dataset.name]));
  place = { toTop: from && board.getBoundingClientRect().top < 0, open, runs };
});

document.addEventListener("htmx:afterSwap", () => {
  if (!place) return;
  for (const id of place.open) {
    const opened = document.getElementById(id);
    if (opened) opened[opened.matches(".fold") ? "checked" : "open"] = true;
  }
  if (place.runs) choose(place.runs);
  else tellChosen();
  if (place.toTop) document.getElementById("board").scrollIntoView();
  place = undefined;
});

// What opens from a button closes with a click elsewhere, and with Escape, which leads back to the button.
document.addEventListener("click", ({ target }) => {
  for (const tool of document.querySelectorAll("details.tool[open]")) if (!tool.contains(target)) tool.open = false;
});

document.addEventListener("keydown", ({ key, target }) => {
  const tool = key === "Escape" && target.closest("details.tool[open]");
  if (!tool) return;
  tool.open = false;
  tool.querySelector("summary").focus();
});

// Keys that follow a link or focus a field of the page, and "?", which lists them.
const SHORTCUTS = [
  ["/", 'main [type="search"]', "filter or search"],
  ["c", '#with, main a[href$="/comparison/"]', "compare"],
  ["[", 'main a[rel="prev"]', "previous topic or page"],
  ["]", 'main a[rel="next"]', "next topic or page"],
];

function showShortcuts() {
  const dialog = document.createElement("dialog");
  const list = Object.assign(document.createElement("dl"), { className: "pairs" });
  for (const [key, selector, words] of SHORTCUTS) {
    if (!document.querySelector(selector)) continue;
    const name = document.createElement("dt");
    name.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    list.append(name, Object.assign(document.createElement("dd"), { textContent: words }));
  }
  const form = Object.assign(document.createElement("form"), { method: "dialog" });
  form.append(Object.assign(document.createElement("button"), { textContent: "Close" }));
  const title = list.children.length ? "Keys of this page" : "This page has no keys of its own";
  dialog.append(Object.assign(document.createElement("h2"), { textContent: title }), list, form);
  dialog.setAttribute("aria-label", title);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const typing = target.closest("input, select, textarea, dialog, [role=application]");
  if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
  if (key === "?") return showShortcuts();
  const [, selector] = SHORTCUTS.find(([name]) => name === key) ?? [];
  const element = selector && document.querySelector(selector);
  if (!element) return;
  event.preventDefault();
  if (element.matches("input")) element.focus();
  else element.click();
});
