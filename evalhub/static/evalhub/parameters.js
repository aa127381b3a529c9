// The cells of the table of parameters are written as CSV into the form, which is what is sent. Who edits the CSV or
// chooses a file edits no cells.
const form = document.getElementById("edit-parameters");
const cells = form.querySelector("#cells");
const table = form.querySelector("#table");
const words = form.querySelector("#edited");

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function write() {
  const lines = [...cells.querySelectorAll("tr")].map((line) =>
    [...line.cells].map((cell) => quoted(cell.dataset.name ?? cell.querySelector("input")?.value ?? cell.textContent)).join(","));
  table.value = `${lines.join("\r\n")}\r\n`;
  const changed = [...cells.querySelectorAll("input")].filter((input) => input.value !== input.defaultValue).length;
  words.textContent = changed ? `${changed} ${changed === 1 ? "cell" : "cells"} changed` : "";
  if (changed) form.dataset.busy = "edited";
  else delete form.dataset.busy;
}

const heads = () => [...cells.querySelectorAll("thead th")].map((head) => head.dataset.name);

function addColumn() {
  const field = form.querySelector("#new-name");
  const column = field.value.trim();
  if (!column || heads().includes(column)) return field.focus();
  const head = Object.assign(document.createElement("th"), { scope: "col", textContent: column });
  head.dataset.name = column;
  cells.querySelector("thead tr").append(head);
  for (const line of cells.querySelectorAll("tbody tr")) {
    const input = Object.assign(document.createElement("input"), { type: "text", spellcheck: false, autocomplete: "off" });
    line.insertCell().append(input);
    const tag = [...line.cells][heads().findIndex((name) => name === "tag")].textContent;
    input.ariaLabel = `${column} of ${tag}`;
  }
  field.value = "";
  cells.querySelector("tbody tr td:last-child input").focus();
  write();
}

function leaveCells() {
  cells?.remove();
  form.querySelector("#new-parameter")?.remove();
  words.textContent = "The CSV is saved";
}

if (cells) {
  cells.addEventListener("input", write);
  form.querySelector("#add-parameter").addEventListener("click", addColumn);
  form.querySelector("#new-name").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    addColumn();
  });
  table.addEventListener("input", leaveCells);
  form.querySelector("#file").addEventListener("change", leaveCells);
}
form.addEventListener("submit", () => delete form.dataset.busy);
