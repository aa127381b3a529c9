// Several run files at once: a row for each, with its tag and its progress, sent to the API two at a time. A single file
// takes the form's own way, and without this script all files do.
const form = document.querySelector("form[data-runs]");
const chosen = form.querySelector("#file");
const table = form.querySelector("#rows");
const options = form.querySelector("#options");
const outcome = form.querySelector("#outcome");
const sending = form.querySelector("#sending");
const AT_ONCE = 2;
const TRIES = 3;
// Runs of one request for states, and the seconds for which evaluations are awaited.
const STATES = 200;
const PATIENCE = 600;
const ENDINGS = /(\.(gz|zst|run|txt|trec|res|tsv|json))+$/i;
let rows = [];
// Counts the files that are chosen or sent, so that what belongs to earlier ones is dropped.
let round = 0;

const make = (name, properties = {}) => Object.assign(document.createElement(name), properties);
const size = (bytes) => `${(bytes / 1048576).toLocaleString("en", { maximumFractionDigits: 1 })} MB`;

function tagOfName(name) {
  return name.replace(ENDINGS, "").replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 64);
}

function show(row, state, words, ...more) {
  row.state = state;
  row.line.classList.toggle("unfolded", more.some((part) => part instanceof HTMLElement && part.matches("details, button")));
  row.cell.replaceChildren(make("span", { className: `label ${state}`, textContent: words }), ...more);
}

function makeRow(file, settings) {
  const row = { file, settings, line: make("tr"), tag: make("input", { type: "text", maxLength: 64 }), cell: make("td") };
  row.tag.ariaLabel = `tag of ${file.name}`;
  row.tag.placeholder = "tag in the file";
  const more = settings ? ` with ${settings.name}` : "";
  const name = make("th", { scope: "row", textContent: file.name, title: `${file.name}${more}` });
  name.append(" ", make("span", { className: "faint", textContent: `${size(file.size)}${more}` }));
  const tag = make("td");
  tag.append(row.tag);
  row.line.append(name, tag, row.cell);
  if (file.size > Number(form.dataset.most)) show(row, "failed", "too large", ` the limit is ${size(form.dataset.most)}`);
  else row.state = "waiting";
  return row;
}

// The rows of the files that are chosen; one file needs none. A JSON file has the parameters of the run of its name.
function showRows() {
  round++;
  const files = [...chosen.files];
  const stem = (file) => file.name.replace(ENDINGS, "");
  const runs = files.filter(({ name }) => !/\.json$/i.test(name));
  const settings = new Map(files.filter((file) => !runs.includes(file)).map((file) => [stem(file), file]));
  rows = files.length > 1 ? runs.map((file) => makeRow(file, settings.get(stem(file)))) : [];
  const used = new Set(rows.map((row) => row.settings));
  for (const [, file] of settings) if (rows.length && !used.has(file)) rows.push(alone(file));
  table.replaceChildren();
  // These are of a single file.
  for (const part of form.querySelectorAll("[id^=one-]")) {
    part.hidden = rows.length > 0;
    for (const field of part.querySelectorAll("input, textarea")) field.disabled = rows.length > 0;
  }
  form.querySelector("#several-hint").hidden = rows.length === 0;
  document.getElementById("report").replaceChildren();
  outcome.textContent = rows.length ? `${rows.length} files, ${size(files.reduce((sum, file) => sum + file.size, 0))}` : "";
  sending.hidden = true;
  sayOptions();
  if (!rows.length) return;
  const head = make("tr");
  for (const words of ["File", "Tag", "Result"]) head.append(make("th", { scope: "col", textContent: words }));
  const lines = make("table", { className: "small", ariaLabel: "Chosen files" });
  const body = make("tbody");
  lines.append(make("thead"), body);
  lines.tHead.append(head);
  body.append(...rows.map((row) => row.line));
  table.append(lines);
  proposeTags();
}

// A JSON file without a run is not sent: its reader learns why.
function alone(file) {
  const row = makeRow(file);
  row.tag.disabled = true;
  row.alone = true;
  show(row, "failed", "no run", " there is no run file of this name");
  return row;
}

function proposeTags() {
  const byName = form.querySelector("#tags").value === "name";
  for (const row of rows) if (row.tag.value === "" || row.tag.value === row.proposed) {
    row.proposed = byName ? tagOfName(row.file.name) : "";
    row.tag.value = row.proposed;
  }
}

// The present values of the options, for the line that folds them.
function sayOptions() {
  const { team, tags, if_taken: taken, tag, system, experiment, label, description, metadata, costs } = form.elements;
  const name = team.selectedOptions[0]?.textContent.trim().replace(" (you alone)", "");
  const words = name ? [`team ${name}`] : [];
  if (!rows.length && tag.value) words.push(`tag ${tag.value}`);
  else words.push(tags.value === "name" ? "tags from the file names" : "tags from the files");
  if (taken.value === "version") words.push("next version of a taken tag");
  if (system.value) words.push(`system ${system.value}`);
  if (experiment?.value) words.push(`experiment ${experiment.selectedOptions[0].textContent.trim()}`);
  if (!rows.length && label.value) words.push(`label ${label.value}`);
  for (const [field, text] of [[description, "a description"], [metadata, "parameters"], [costs, "costs"]]) {
    if (field.value.trim()) words.push(text);
  }
  options.querySelector("#chosen-options").textContent = words.join(", ");
}

// `key = value` lines, as the form's own way reads them.
function valuesOf(text) {
  if (text.trim().startsWith("{")) return text;
  const values = Object.create(null);
  for (const [number, line] of text.split(/\r?\n/).entries()) {
    if (!line.trim()) continue;
    const at = line.indexOf("=");
    const key = line.slice(0, Math.max(at, 0)).trim();
    if (!key) throw new Error(`line ${number + 1}: write a key, an equals sign and a value, as in: k1 = 0.9`);
    if (key in values) throw new Error(`line ${number + 1}: ${key} is there twice; keep one of the lines`);
    const value = line.slice(at + 1).trim();
    try {
      values[key] = JSON.parse(value);
    } catch {
      values[key] = value;
    }
  }
  return JSON.stringify(values);
}

// The parameters of the form, replaced by those of the run's own file where that has the same key.
async function settingsOf(row) {
  const common = valuesOf(form.elements.metadata.value);
  if (!row.settings) return common;
  const own = JSON.parse(await row.settings.text());
  if (own === null || typeof own !== "object" || Array.isArray(own)) throw new Error("not a JSON object");
  return JSON.stringify({ ...JSON.parse(common || "{}"), ...own });
}

// A key for each request with these fields: sent again after a lost answer, it takes effect once.
function keyOf(row, fields) {
  const request = JSON.stringify(fields);
  if (row.request !== request) {
    row.request = request;
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
      row.part = event.lengthComputable ? event.loaded / event.total : 0;
      showSent();
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
  const lines = (answer.errors ?? []).filter((problem) => problem.line);
  if (lines.length < 2) return [];
  const list = make("details");
  const items = make("ul");
  items.append(...lines.map((problem) => make("li", { textContent: `line ${problem.line}: ${problem.detail}` })));
  list.append(make("summary", { textContent: `${lines.length} lines` }), items);
  return [list];
}

// Another run of the team has the tag: the run may become its next version, or take another tag.
function nextVersion(row, detail) {
  const button = make("button", { type: "button", className: "plain", textContent: "make it the next version" });
  button.addEventListener("click", () => {
    row.version = true;
    sendAll(false, [row]);
  });
  return [` ${detail.replace(/; choose a new tag$/, "")}: `, button, " or choose another tag"];
}

async function send(row, dryRun) {
  const value = (name) => form.elements[name].value;
  let metadata;
  try {
    metadata = await settingsOf(row);
  } catch (error) {
    return show(row, "failed", "refused", ` ${row.settings.name}: ${error.message}`);
  }
  const fields = { tag: row.tag.value, team: value("team"), description: value("description"),
    experiment: form.querySelector("#experiment")?.value ?? "",
    metadata, costs: valuesOf(value("costs")), system: value("system"),
    if_taken: row.version ? "version" : value("if_taken"), dry_run: dryRun ? "true" : "" };
  for (let attempt = 1; ; attempt++) {
    show(row, "evaluating", "sending");
    const { status, wait, answer } = await request(row, fields);
    if (status >= 200 && status < 300) {
      const warnings = answer.warnings?.warnings ?? [];
      const notes = warnings.length ? ` ${warnings.length} ${warnings.length > 1 ? "warnings" : "warning"}: ${warnings[0].message}` : "";
      if (dryRun) return show(row, "checked", "can be submitted", ` as ${answer.tag}, ${answer.topics} topics.${notes}`);
      row.run = answer;
      row.fresh = status === 202;
      row.contradicts = warnings.some(({ code }) => code === "rank_contradicts_score");
      row.cell.title = notes.trim();
      return show(row, "evaluated", row.fresh ? "submitted" : "there already", " ", linkTo(answer), notes);
    }
    if (attempt < TRIES && (status === 0 || status === 429 || status >= 500)) {
      show(row, "queued", "waiting", ` ${answer.detail}`);
      await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(wait, 60)));
      continue;
    }
    if (answer.code === "tag_taken") return show(row, "failed", "refused", ...nextVersion(row, answer.detail));
    return show(row, "failed", "refused", ` ${answer.detail}`, ...problems(answer));
  }
}

function showSent() {
  const parts = rows.filter((row) => row.queued).map((row) => (row.sent ? 1 : row.part));
  Object.assign(sending, { hidden: false, max: parts.length, value: parts.reduce((sum, part) => sum + part, 0) });
}

// What came of the files: how many are new, were there already or were refused.
function wordsOf(dryRun) {
  const refused = rows.filter((row) => row.state === "failed").length;
  const ending = refused ? `, ${refused} refused` : "";
  if (dryRun) return `${rows.filter((row) => row.run || row.state === "checked").length} of ${rows.length} can be submitted${ending}.`;
  const stored = rows.filter((row) => row.run);
  const fresh = stored.filter((row) => row.fresh).length;
  const repeated = stored.length - fresh;
  if (!repeated && !refused) return `${fresh} ${fresh === 1 ? "run" : "runs"} in.`;
  return `${fresh} new${repeated ? `, ${repeated} ${repeated > 1 ? "were" : "was"} there already` : ""}${ending}.`;
}

// Words and links that follow each other.
function say(...parts) {
  outcome.replaceChildren(...parts.flatMap((part, at) => (at ? [" ", part] : [part])));
}

function linkTo(run) {
  return make("a", { href: `/runs/${run.id}/`, textContent: run.tag });
}

const ordinal = (rank) => {
  const tens = Math.floor(rank / 10) % 10;
  return `${rank}${(tens !== 1 && { 1: "st", 2: "nd", 3: "rd" }[rank % 10]) || "th"}`;
};

// The first lines of the leaderboard until one of these runs is among them; none where its values are not to be seen.
async function bestOf(runs) {
  const ids = new Set(runs.map(({ id }) => id));
  let address = `${form.dataset.ranking}?limit=100`;
  while (address) {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (!answer.ok) return undefined;
    const page = await answer.json();
    const line = page.results.find(({ run, rank }) => rank && ids.has(run.id));
    if (line) return { run: line.run, rank: line.rank, value: line.values[page.sort].mean, measure: page.sort };
    address = page.next && new URL(page.next).pathname + new URL(page.next).search;
  }
  return undefined;
}

// Wait until the runs are evaluated; `progress` gets how many are.
async function evaluated(runs, mine, progress) {
  const until = performance.now() + 1000 * PATIENCE;
  while (mine === round && performance.now() < until) {
    let ready = 0;
    let waiting = 0;
    let seconds = 1;
    for (let at = 0; at < runs.length; at += STATES) {
      const ids = runs.slice(at, at + STATES).map(({ id }) => id).join(",");
      const answer = await fetch(`${form.dataset.states}?id=${ids}`, { headers: { Accept: "application/json" } });
      if (!answer.ok) return false;
      seconds = Math.max(seconds, Number(answer.headers.get("Retry-After")) || 0);
      for (const { state, code } of (await answer.json()).runs) {
        if (state === "evaluated") ready++;
        // Without judgements they wait until some are uploaded.
        else if (code !== "no_active_qrels" && (state === "queued" || state === "evaluating")) waiting++;
      }
    }
    if (!waiting) return ready > 0;
    progress(ready);
    await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(seconds, 10)));
  }
  return false;
}

// Runs whose ranks contradict their scores, folded; nothing if there are none.
function contradicted(runs) {
  if (!runs.length) return [];
  const words = `${runs.length} ${runs.length > 1 ? "have" : "has"} ranks that contradict the scores; scores decide`;
  const list = make("details");
  list.append(make("summary", { textContent: words }), ...runs.flatMap((run, at) => (at ? [", ", linkTo(run)] : [linkTo(run)])));
  return [list];
}

async function report() {
  const mine = round;
  const words = wordsOf(false);
  const stored = rows.filter((row) => row.run).map((row) => row.run);
  if (!stored.length) return say(words);
  const board = () => make("a", { href: form.dataset.board, textContent: "Open the leaderboard" });
  const contradictions = contradicted(rows.filter((row) => row.run && row.contradicts).map((row) => row.run));
  const ending = (...parts) => say(words, ...parts, board(), ...contradictions);
  ending();
  try {
    const finished = await evaluated(stored, mine, (ready) => {
      if (mine !== round) return;
      Object.assign(sending, { hidden: false, max: stored.length, value: ready });
      ending(`${ready} of ${stored.length} evaluated …`);
    });
    const best = finished && (await bestOf(stored));
    if (mine !== round) return;
    if (best) ending("Best:", linkTo(best.run), `${best.measure} ${best.value.toFixed(4)} (${ordinal(best.rank)}).`);
    else ending();
  } catch {
    if (mine === round) ending();
  }
  if (mine === round) sending.hidden = true;
}

async function sendAll(dryRun, some = rows) {
  for (const text of form.querySelectorAll("#metadata, #costs")) {
    try {
      valuesOf(text.value);
      text.setCustomValidity("");
    } catch (error) {
      options.open = true;
      text.setCustomValidity(error.message);
      text.reportValidity();
      return;
    }
  }
  round++;
  const most = Number(form.dataset.most);
  const waiting = some.filter((row) => !row.run && !row.alone && row.file.size <= most);
  for (const row of rows) Object.assign(row, { queued: waiting.includes(row), sent: false, part: 0 });
  // What an earlier press has stored is not new.
  for (const row of some) row.fresh = false;
  const buttons = form.querySelectorAll("button[name=action]");
  for (const button of buttons) button.disabled = true;
  form.dataset.busy = "sending";
  const total = waiting.length;
  let sent = 0;
  const showProgress = () => {
    say(`${dryRun ? "Checked" : "Sent"} ${sent} of ${total} …`);
    showSent();
  };
  if (total) showProgress();
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let row = waiting.shift(); row; row = waiting.shift()) {
      await send(row, dryRun);
      row.sent = true;
      sent++;
      showProgress();
    }
  }));
  for (const button of buttons) button.disabled = false;
  delete form.dataset.busy;
  sending.hidden = true;
  if (dryRun) say(wordsOf(true));
  else await report();
}

chosen.addEventListener("change", showRows);
options.addEventListener("input", sayOptions);
form.querySelector("#tags").addEventListener("change", proposeTags);
for (const text of form.querySelectorAll("#metadata, #costs")) {
  text.addEventListener("input", () => text.setCustomValidity(""));
}
// A wrong field in a folded part cannot be shown by the browser.
form.addEventListener("invalid", ({ target }) => {
  for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
}, true);
document.getElementById("report").parentElement.addEventListener("click", ({ target }) => {
  if (target.matches("a[href='#if_taken']")) options.open = true;
});
// Before htmx, which sends a single file.
form.addEventListener("submit", (event) => {
  if (!rows.length) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  sendAll(event.submitter?.value === "check");
}, true);
form.addEventListener("htmx:xhr:progress", ({ detail }) => {
  sending.hidden = !detail.lengthComputable || detail.loaded === detail.total;
  sending.max = 1;
  sending.value = detail.total ? detail.loaded / detail.total : 0;
});
// A browser that comes back to the page may have kept its files.
showRows();
