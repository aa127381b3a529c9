// Several run files at once: a row for each, with its tag and its progress, sent to the API two at a time. A single file
// takes the form's own way, and without this script all files do.
const form = document.querySelector("form[data-runs]");
const chosen = form.querySelector("#file");
const table = form.querySelector("#rows");
const AT_ONCE = 2;
const TRIES = 3;
const ENDINGS = /(\.(gz|zst|run|txt|trec|res|tsv|json))+$/i;
let rows = [];

const make = (name, properties = {}) => Object.assign(document.createElement(name), properties);
const size = (bytes) => `${(bytes / 1048576).toLocaleString("en", { maximumFractionDigits: 1 })} MB`;

function tagOfName(name) {
  return name.replace(ENDINGS, "").replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 64);
}

function tell(row, state, words, ...more) {
  row.state = state;
  row.cell.replaceChildren(make("span", { className: `label ${state}`, textContent: words }), ...more);
}

function makeRow(file, beside) {
  const row = { file, beside, line: make("tr"), tag: make("input", { type: "text", maxLength: 64 }), cell: make("td") };
  row.bar = make("progress", { max: 1, value: 0, ariaLabel: `sent of ${file.name}`, hidden: true });
  row.tag.ariaLabel = `tag of ${file.name}`;
  row.tag.placeholder = "as in the file";
  const name = make("th", { scope: "row", textContent: file.name });
  const more = beside ? ` with ${beside.name}` : "";
  name.append(" ", make("span", { className: "faint", textContent: `${size(file.size)}${more}` }));
  const tag = make("td");
  tag.append(row.tag);
  const sent = make("td");
  sent.append(row.bar);
  row.line.append(name, tag, sent, row.cell);
  row.cell.className = "wide";
  if (file.size > Number(form.dataset.most)) tell(row, "failed", "too large", ` the limit is ${size(form.dataset.most)}`);
  else row.state = "waiting";
  return row;
}

// The rows of the files that are chosen; one file needs none. A JSON file has the settings of the run of its name.
function showRows() {
  const files = [...chosen.files];
  const stem = (file) => file.name.replace(ENDINGS, "");
  const runs = files.filter(({ name }) => !/\.json$/i.test(name));
  const settings = new Map(files.filter((file) => !runs.includes(file)).map((file) => [stem(file), file]));
  rows = files.length > 1 ? runs.map((file) => makeRow(file, settings.get(stem(file)))) : [];
  const used = new Set(rows.map(({ beside }) => beside));
  for (const [, file] of settings) if (rows.length && !used.has(file)) rows.push(alone(file));
  table.replaceChildren();
  // These are of a single file.
  for (const part of form.querySelectorAll("[id^=one-]")) {
    part.hidden = rows.length > 0;
    for (const field of part.querySelectorAll("input, textarea")) field.disabled = rows.length > 0;
  }
  document.getElementById("report").replaceChildren();
  if (!rows.length) return;
  const head = make("tr");
  for (const words of ["File", "Tag", "Sent", "Result"]) head.append(make("th", { scope: "col", textContent: words }));
  const frame = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Chosen files" });
  const lines = make("table");
  const body = make("tbody");
  lines.append(make("thead"), body);
  lines.tHead.append(head);
  body.append(...rows.map((row) => row.line));
  frame.append(lines);
  table.append(frame, make("p", { id: "told", className: "faint", role: "status" }));
  proposeTags();
}

// A JSON file without a run is not sent: its reader learns why.
function alone(file) {
  const row = makeRow(file);
  row.tag.disabled = true;
  row.alone = true;
  tell(row, "failed", "no run", " there is no run file of this name");
  return row;
}

function proposeTags() {
  const byName = form.querySelector("#tags").value === "name";
  for (const row of rows) if (row.tag.value === "" || row.tag.value === row.proposed) {
    row.proposed = byName ? tagOfName(row.file.name) : "";
    row.tag.value = row.proposed;
  }
}

// `key = value` lines, as the form's own way reads them.
function valuesOf(text) {
  if (text.trim().startsWith("{")) return text;
  const found = Object.create(null);
  for (const [number, line] of text.split(/\r?\n/).entries()) {
    if (!line.trim()) continue;
    const at = line.indexOf("=");
    const key = line.slice(0, Math.max(at, 0)).trim();
    if (!key) throw new Error(`line ${number + 1}: write a key, an equals sign and a value, as in: k1 = 0.9`);
    if (key in found) throw new Error(`line ${number + 1}: ${key} is there twice; keep one of the lines`);
    const value = line.slice(at + 1).trim();
    try {
      found[key] = JSON.parse(value);
    } catch {
      found[key] = value;
    }
  }
  return JSON.stringify(found);
}

// Those of the form and, of the same key instead, those of the file beside the run.
async function settingsOf(row) {
  const common = valuesOf(form.elements.metadata.value);
  if (!row.beside) return common;
  const own = JSON.parse(await row.beside.text());
  if (own === null || typeof own !== "object" || Array.isArray(own)) throw new Error("not a JSON object");
  return JSON.stringify({ ...JSON.parse(common || "{}"), ...own });
}

// A key for each request with these fields: sent again after a lost answer, it takes effect once.
function keyOf(row, fields) {
  const asked = JSON.stringify(fields);
  if (row.asked !== asked) {
    row.asked = asked;
    row.key = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  return row.key;
}

function request(row, fields) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value) body.append(name, value);
  body.append("file", row.file);
  return new Promise((resolve) => {
    const call = new XMLHttpRequest();
    call.upload.onprogress = (event) => {
      row.bar.value = event.lengthComputable ? event.loaded / event.total : 0;
    };
    call.onloadend = () => {
      let answer = {};
      try {
        answer = JSON.parse(call.responseText);
      } catch {
        answer.detail = call.status ? `the server answered ${call.status}` : "the connection was lost";
      }
      resolve({ status: call.status, wait: Number(call.getResponseHeader("Retry-After")) || 1, answer });
    };
    call.open("POST", form.dataset.runs);
    call.setRequestHeader("X-CSRFToken", form.querySelector("[name=csrfmiddlewaretoken]").value);
    call.setRequestHeader("Idempotency-Key", keyOf(row, fields));
    call.send(body);
  });
}

function problems(answer) {
  const lines = (answer.errors ?? []).filter((one) => one.line);
  if (lines.length < 2) return [];
  const list = make("details");
  const items = make("ul");
  items.append(...lines.map((one) => make("li", { textContent: `line ${one.line}: ${one.detail}` })));
  list.append(make("summary", { textContent: `${lines.length} lines` }), items);
  return [list];
}

async function send(row, dryRun) {
  const value = (name) => form.elements[name].value;
  let metadata;
  try {
    metadata = await settingsOf(row);
  } catch (error) {
    return tell(row, "failed", "refused", ` ${row.beside.name}: ${error.message}`);
  }
  const fields = { tag: row.tag.value, team: value("team"), description: value("description"),
    experiment: form.querySelector("#experiment")?.value ?? "",
    metadata, costs: valuesOf(value("costs")), system: value("system"),
    if_taken: value("if_taken"), dry_run: dryRun ? "true" : "" };
  row.bar.hidden = false;
  for (let attempt = 1; ; attempt++) {
    tell(row, "evaluating", "sending");
    const { status, wait, answer } = await request(row, fields);
    if (status >= 200 && status < 300) {
      const odd = answer.warnings?.warnings?.length ?? 0;
      const notes = odd ? ` ${odd} ${odd > 1 ? "warnings" : "warning"}: ${answer.warnings.warnings[0].message}` : "";
      if (dryRun) return tell(row, "checked", "can be submitted", ` as ${answer.tag}, ${answer.topics} topics.${notes}`);
      const link = make("a", { href: `/runs/${answer.id}/`, textContent: answer.tag });
      return tell(row, "evaluated", status === 202 ? "submitted" : "was submitted before", " ", link, notes);
    }
    if (attempt < TRIES && (status === 0 || status === 429 || status >= 500)) {
      tell(row, "queued", "waiting", ` ${answer.detail}`);
      await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(wait, 60)));
      continue;
    }
    return tell(row, "failed", "refused", ` ${answer.detail}`, ...problems(answer));
  }
}

function report(dryRun) {
  const number = (state) => rows.filter((row) => row.state === state).length;
  const done = dryRun ? `${number("checked")} can be submitted` : `${number("evaluated")} submitted`;
  const words = `${done} of ${rows.length}, ${number("failed")} refused`;
  const told = document.getElementById("told");
  told.textContent = words;
  if (!dryRun && number("evaluated")) told.append(". ", make("a", { href: form.dataset.board, textContent: "See the leaderboard" }));
}

async function sendAll(dryRun) {
  for (const text of form.querySelectorAll("#metadata, #costs")) {
    try {
      valuesOf(text.value);
      text.setCustomValidity("");
    } catch (error) {
      text.setCustomValidity(error.message);
      text.reportValidity();
      return;
    }
  }
  const most = Number(form.dataset.most);
  const left = rows.filter((row) => row.state !== "evaluated" && !row.alone && row.file.size <= most);
  const buttons = form.querySelectorAll("button[name=action]");
  for (const button of buttons) button.disabled = true;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let row = left.shift(); row; row = left.shift()) {
      await send(row, dryRun);
      report(dryRun);
    }
  }));
  for (const button of buttons) button.disabled = false;
  report(dryRun);
}

chosen.addEventListener("change", showRows);
form.querySelector("#tags").addEventListener("change", proposeTags);
for (const text of form.querySelectorAll("#metadata, #costs")) {
  text.addEventListener("input", () => text.setCustomValidity(""));
}
// Before htmx, which sends a single file.
form.addEventListener("submit", (event) => {
  if (!rows.length) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  sendAll(event.submitter?.value === "check");
}, true);
form.addEventListener("htmx:xhr:progress", ({ detail }) => {
  const bar = form.querySelector("#sending");
  bar.hidden = !detail.lengthComputable || detail.loaded === detail.total;
  bar.value = detail.total ? detail.loaded / detail.total : 0;
});
form.querySelector("#beside").hidden = false;
// A browser that comes back to the page may have kept its files.
showRows();
