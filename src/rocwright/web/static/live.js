// What changes while one looks. Every page is whole without it.
"use strict";

function watchRun(place) {
  if (place.dataset.state === "ended") return;
  const events = new EventSource(`/runs/${encodeURIComponent(place.dataset.run)}/live`);
  let shown = new Set([...place.querySelectorAll("[data-row]")].map((row) => row.dataset.row));
  events.addEventListener("state", (event) => {
    const told = JSON.parse(event.data);
    document.title = `${told.title} · rocwright`;
    const share = document.getElementById("share");
    if (share) {
      share.value = told.share;
      document.getElementById("left").textContent = told.words;
    }
    for (const [name, step] of Object.entries(told.steps)) {
      if (!shown.has(name)) return location.reload();
      for (const box of place.querySelectorAll(`[data-step="${CSS.escape(name)}"]`)) box.setAttribute("class", `step ${step.look}`);
      const row = place.querySelector(`[data-row="${CSS.escape(name)}"]`);
      const look = row.querySelector(".look");
      look.className = `look ${step.look}`;
      look.textContent = step.look;
      if (step.seconds) row.cells[2].textContent = seconds(step.seconds);
      if (step.jobs) row.cells[3].textContent = step.jobs;
      const last = row.cells[row.cells.length - 1];
      if (step.log && !last.firstElementChild) {
        const link = document.createElement("a");
        link.href = `/runs/${encodeURIComponent(place.dataset.run)}/log/${name.split("/").map(encodeURIComponent).join("/")}`;
        link.textContent = "log";
        last.append(link);
      }
    }
    if (told.state === "ended") {
      events.close();
      location.replace("?live");
    }
  });
  events.addEventListener("end", () => events.close());
}

function seconds(count) {
  return count < 90 ? `${count} s` : `${Math.floor(count / 60)} min ${count % 60} s`;
}

function watchLog(place) {
  if (place.dataset.ended) return;
  const events = new EventSource(place.dataset.live);
  const most = 20000;
  events.addEventListener("lines", (event) => {
    const atEnd = innerHeight + scrollY >= document.body.scrollHeight - 80;
    for (const line of JSON.parse(event.data)) append(place, line);
    const lines = place.querySelectorAll(".line");
    for (let at = 0; at < lines.length - most; at++) lines[at].remove();
    if (atEnd) scrollTo(0, document.body.scrollHeight);
  });
  events.addEventListener("end", () => events.close());
}

function append(place, line) {
  if (line.kind === "phase") {
    const part = document.createElement("details");
    part.open = true;
    const title = document.createElement("summary");
    title.textContent = line.text;
    part.append(title);
    place.append(part);
    return;
  }
  const row = document.createElement("div");
  row.className = line.kind ? `line ${line.kind}` : "line";
  const at = document.createElement("span");
  at.className = "at";
  at.textContent = line.time;
  row.append(at, line.text);
  (place.querySelector("details:last-of-type") || place).append(row);
}

// A page that is left open: what is new is put in its place, unless somebody is reading there with the keyboard.
function stayFresh(place) {
  const stale = document.getElementById("stale");
  let last = null;
  const look = async () => {
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.redirected || !answer.ok) throw new Error(answer.status);
      const text = await answer.text();
      stale.hidden = true;
      if (text === last) return;
      last = text;
      show(new DOMParser().parseFromString(text, "text/html"), place);
    } catch {
      stale.hidden = false;
    }
  };
  setInterval(look, place.dataset.fresh * 1000);
}

function show(page, place) {
  document.title = page.title;
  const icon = document.querySelector("link[rel=icon]"), next = page.querySelector("link[rel=icon]");
  if (icon.getAttribute("href") !== next.getAttribute("href")) icon.replaceWith(next);
  const busy = place.contains(document.activeElement) && place !== document.activeElement;
  if (!busy && getSelection().isCollapsed) place.replaceChildren(...page.getElementById(place.id).childNodes);
}

document.querySelector(".top [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
for (const place of document.querySelectorAll("[data-fresh]")) stayFresh(place);
for (const place of document.querySelectorAll("[data-run]")) watchRun(place);
for (const place of document.querySelectorAll("#log")) watchLog(place);
