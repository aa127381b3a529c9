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

// A chart answers the pointer from the moment it is pointed at: until then it is a picture, which costs nothing.
const dark = matchMedia("(prefers-color-scheme: dark)");
let vega;

function loadVega(address) {
  vega ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: address, onload: resolve, onerror: reject });
    document.head.append(script);
  });
  return vega;
}

async function enliven(figure) {
  if (figure.dataset.live) return;
  figure.dataset.live = "loading";
  const picture = figure.querySelector("picture");
  const size = matchMedia("(max-width: 40rem)").matches ? "narrow" : figure.dataset.size;
  const theme = dark.matches ? "dark" : "light";
  const [answer] = await Promise.all([
    fetch(`${figure.dataset.chart}&theme=${theme}&size=${size}`),
    loadVega(figure.dataset.vega),
  ]);
  if (!answer.ok) return;
  const place = document.createElement("div");
  place.className = "live";
  place.style.width = `${picture.querySelector("img").clientWidth}px`;
  picture.after(place);
  const options = { ast: true, actions: false, defaultStyle: false, renderer: "svg", tooltip: { disableDefaultStyle: true } };
  await window.vegaEmbed(place, await answer.json(), options);
  figure.dataset.live = "yes";
}

function enlivenPointedAt(event) {
  const figure = event.target.closest?.("figure[data-chart]");
  if (figure) enliven(figure).catch(() => delete figure.dataset.live);
}

document.addEventListener("pointerover", enlivenPointedAt);

dark.addEventListener("change", () => {
  for (const figure of document.querySelectorAll("figure[data-live]")) {
    figure.querySelector(".live")?.remove();
    delete figure.dataset.live;
  }
});
