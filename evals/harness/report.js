"use strict";
// The list of cases: filtered, shown a part at a time. Everything is written as text, never as HTML.
const cases = JSON.parse(document.getElementById("records").textContent);
const [ID, GROUP, STATUS, SECONDS, TOLD, DETAIL] = [0, 1, 2, 3, 4, 5];
const STEP = 100;
const at = (id) => document.getElementById(id);
let shown = STEP;

for (const [place, column] of [["group", GROUP], ["status", STATUS]]) {
  for (const name of new Set(cases.map((each) => each[column]))) {
    if (name) at(place).append(new Option(name, name));
  }
  at(place).hidden = at(place).options.length < 3;
}

function fits(each) {
  const words = at("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = each.join("\n").toLowerCase();
  return (!at("group").value || each[GROUP] === at("group").value)
    && (!at("status").value || each[STATUS] === at("status").value)
    && words.every((word) => (word[0] === "-" && word.length > 1 ? !text.includes(word.slice(1)) : text.includes(word)));
}

function line(each) {
  const row = document.createElement("tr");
  row.className = "case";
  row.tabIndex = 0;
  for (const column of [ID, STATUS, SECONDS, TOLD]) {
    const cell = row.insertCell();
    cell.textContent = each[column];
    if (column === STATUS) cell.className = each[STATUS];
  }
  const open = () => {
    if (row.nextSibling && row.nextSibling.className === "detail") return row.nextSibling.remove();
    const below = document.createElement("tr");
    below.className = "detail";
    const cell = below.insertCell();
    cell.colSpan = 4;
    cell.append(document.createElement("pre"));
    cell.firstChild.textContent = each[DETAIL] || "kept in cases.jsonl";
    row.after(below);
  };
  row.addEventListener("click", open);
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
  return row;
}

function show() {
  const fitting = cases.filter(fits);
  at("rows").replaceChildren(...fitting.slice(0, shown).map(line));
  at("count").textContent = `${fitting.length} of ${cases.length} cases`;
  at("more").hidden = fitting.length <= shown;
}

for (const place of ["words", "group", "status"]) {
  at(place).addEventListener("input", () => { shown = STEP; show(); });
}
at("more").addEventListener("click", () => { shown += 5 * STEP; show(); });
show();
