// Judging by keyboard: a key presses the button or follows the link that names it. The seconds are those in which the
// page was visible.
const form = document.querySelector("form.judge");
let since = performance.now();
let seconds = 0;

document.addEventListener("visibilitychange", () => {
  if (document.hidden) seconds += (performance.now() - since) / 1000;
  else since = performance.now();
});

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (target.closest("input, select, textarea, dialog") || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  const element = document.querySelector(`main [aria-keyshortcuts="${CSS.escape(key)}"]`);
  if (!element) return;
  event.preventDefault();
  element.click();
});

form.addEventListener("submit", (event) => {
  // Whoever presses twice judges once.
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  const field = form.querySelector("[name=seconds]");
  if (field) field.value = (seconds + (performance.now() - since) / 1000).toFixed(2);
});

// A page that is shown again by the browser's back button can be sent again.
addEventListener("pageshow", () => delete form.dataset.sent);
