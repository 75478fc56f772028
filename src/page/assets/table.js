"use strict";
// Filter and sort of a table: what is typed must stand in a row; a click on a head sorts by it.
(function () {
  const table = document.querySelector("table[data-sort]");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const box = document.querySelector("input[type=search]");
  const told = document.getElementById("shown");
  const buttons = Array.from(document.querySelectorAll("[data-only]"));
  let only = "";
  function show() {
    const wanted = box ? box.value.trim().toLowerCase() : "";
    let count = 0;
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(wanted) && (only === "" || row.dataset.class === only);
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    if (told) told.textContent = count + " of " + rows.length + " shown";
  }
  if (box) box.addEventListener("input", show);
  for (const button of buttons) {
    button.addEventListener("click", function () {
      only = button.dataset.only;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      show();
    });
  }
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach(function (head, column) {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", function () {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = function (row) {
        const cell = row.cells[column];
        return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
      };
      const sorted = rows.slice().sort(function (a, b) {
        const x = key(a), y = key(b);
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return down ? -order : order;
      });
      for (const row of sorted) body.appendChild(row);
    });
  });
  show();
})();
