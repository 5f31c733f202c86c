// The pages read without this file. With it: "/" goes to the search, typing narrows the index, arrows walk the hits.
(function () {
  "use strict";
  var field = document.querySelector("input[type=search]");
  var list = document.getElementById("list");
  document.addEventListener("keydown", function (event) {
    var typing = /^(input|textarea|select)$/i.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  });
  if (!list || !field) return;
  var entries = Array.prototype.slice.call(list.querySelectorAll("li[data-name]"));
  var sections = Array.prototype.slice.call(list.querySelectorAll("section"));
  var found = document.getElementById("found");

  function narrow() {
    var words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    var count = 0;
    entries.forEach(function (entry) {
      var name = entry.getAttribute("data-name");
      var shown = words.every(function (word) { return name.indexOf(word) >= 0; });
      entry.hidden = !shown;
      if (shown) count += 1;
    });
    sections.forEach(function (section) { section.hidden = !section.querySelector("li:not([hidden])"); });
    found.textContent = words.length ? count + " found" : "";
  }

  function links() {
    return entries.filter(function (entry) { return !entry.hidden; })
      .map(function (entry) { return entry.querySelector("a"); }).filter(Boolean);
  }

  document.addEventListener("keydown", function (event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    var all = links();
    var at = all.indexOf(document.activeElement);
    if (at < 0 && document.activeElement !== field) return;
    event.preventDefault();
    var next = at + (event.key === "ArrowDown" ? 1 : -1);
    if (next < 0) field.focus();
    else if (all[next]) all[next].focus();
  });
  field.addEventListener("input", narrow);
  field.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { field.value = ""; narrow(); }
  });
  field.form.addEventListener("submit", function (event) {
    var all = links();
    event.preventDefault();
    if (field.value && all.length) window.location.href = all[0].href;
  });
  field.value = new URLSearchParams(window.location.search).get("q") || "";
  narrow();
})();
