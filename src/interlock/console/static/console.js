// The few lines that a page needs: admission, forms, live updates, relative times, one selection.
"use strict";
(() => {
  const state = document.getElementById("state");

  const ago = (time) => {
    const at = Date.parse(time.dateTime), past = (Date.now() - at) / 1000;
    if (Number.isNaN(at)) return;
    const units = [[86400, "day"], [3600, "hour"], [60, "minute"]];
    const [size, unit] = units.find(([seconds]) => Math.abs(past) >= seconds) || [0, ""];
    time.title = time.dateTime;
    time.textContent = size ? new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(-Math.trunc(past / size), unit) : "just now";
  };
  const times = () => document.querySelectorAll("time[datetime]").forEach(ago);

  const select = () => {
    const node = location.hash.slice(1) || location.pathname.split("/nodes/")[1] || "";
    document.querySelectorAll(".picture a[data-node]").forEach((box) => box.classList.toggle("chosen", box.dataset.node === node));
  };

  // The newest part of a long run is at the end of its picture and of its list.
  const scrollToTip = () => {
    const tip = document.querySelector("[data-tip]");
    if (tip) document.querySelectorAll(".beside .picture").forEach((part) => {
      const box = [...part.querySelectorAll("a[data-node]")].find((one) => one.dataset.node === tip.dataset.node);
      if (!box) return;
      const at = box.getBoundingClientRect(), around = part.getBoundingClientRect();
      part.scrollTop += at.top - around.top - part.clientHeight / 2;
      part.scrollLeft += at.left + at.width / 2 - around.left - part.clientWidth / 2;
    });
  };

  // A box of the picture selects the step on the same page, if it is shown there; else the link leads to its own page.
  document.addEventListener("click", (event) => {
    const box = event.target instanceof Element && event.target.closest(".picture svg a[data-node]");
    if (!box || event.metaKey || event.ctrlKey || !document.getElementById(box.dataset.node)) return;
    event.preventDefault();
    location.hash = box.dataset.node;
  });

  // A refusal is a page, or plain text.
  const wordsOf = (text) => {
    const main = new DOMParser().parseFromString(text, "text/html").querySelector("main h1");
    return main ? main.textContent : text;
  };

  const enter = async () => {
    const secret = location.hash.slice(1), words = document.getElementById("enter");
    if (!secret) return;
    history.replaceState(null, "", location.pathname + location.search);
    const answer = await fetch("/enter", { method: "POST", body: secret });
    // Not a reload: the file that the command opened would still be its origin.
    if (answer.ok) location.replace(location.pathname + location.search);
    else words.textContent = wordsOf(await answer.text()) + " To get another link, run:";
  };

  // What the server rendered last: without a difference nothing is replaced.
  let rendered = document.getElementById("live")?.innerHTML;

  // One page is loaded at a time, so that an earlier answer never takes the place of a later one.
  let loading = null, again = false;
  const refresh = () => {
    again = loading !== null;
    loading ||= replace().catch(() => {}).finally(() => { loading = null; if (again) refresh(); });
    return loading;
  };

  const replace = async () => {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("live") || page.getElementById("main");
    const shown = document.getElementById("live");
    if (fresh.innerHTML === rendered || shown.querySelector("textarea:focus, input:focus")) return;
    rendered = fresh.innerHTML;
    document.title = page.title;
    const open = [...shown.querySelectorAll("details")].map((one) => one.open);
    const scrolled = [...shown.querySelectorAll(".picture")].map((one) => [one.scrollLeft, one.scrollTop]);
    const steps = shown.querySelector("#steps[data-more]"), fresher = fresh.querySelector("#steps");
    // While the page is still being made, only its progress is new.
    const progress = fresh.querySelector("[data-reading]");
    if (progress && !fresher && shown.querySelector("#steps")) {
      shown.querySelectorAll("[data-reading]").forEach((one) => one.remove());
      shown.querySelector("h1").after(progress);
      return wait();
    }
    // Older steps that were loaded stay: a person reads them.
    if (steps && fresher) { fresher.replaceWith(steps); newer(steps); }
    const stopsOf = (part) => [...part.querySelectorAll("a[href], button, summary")];
    const nameOf = (one) => one.getAttribute("href") || one.textContent.replace(/\d+/g, "");
    const focused = stopsOf(shown).find((one) => one === document.activeElement);
    const held = document.createElement("div");
    held.id = "live";
    held.append(...fresh.childNodes);
    held.querySelectorAll("details").forEach((one, at) => { one.open = one.open || Boolean(open[at]); });
    shown.replaceWith(held);
    if (scrolled.length) held.querySelectorAll(".picture").forEach((one, at) => { one.scrollTo(...(scrolled[at] || [0, 0])); });
    else scrollToTip();
    if (focused) stopsOf(held).find((one) => nameOf(one) === nameOf(focused))?.focus();
    times();
    select();
    wait();
    observe();
  };

  // Older steps are loaded as one scrolls. A bounded number stays in the page, and a link leads to the newest.
  const STEPS_MAX = 100;
  const newer = (steps) => {
    if (steps.querySelector("#newer")) return;
    const link = Object.assign(document.createElement("a"), { id: "newer", className: "button", href: location.pathname, textContent: "Newest steps" });
    steps.querySelector("h2").after(link);
  };
  const older = async (link) => {
    const steps = document.getElementById("steps"), more = document.getElementById("older");
    const page = new DOMParser().parseFromString(await (await fetch(link.href)).text(), "text/html");
    const articles = page.querySelectorAll("#steps article"), next = page.querySelector("#older");
    if (!articles.length || !steps.isConnected) return;
    steps.dataset.more = "yes";
    more.before(...articles);
    if (next) link.href = next.querySelector("a").getAttribute("href");
    else more.remove();
    const all = steps.querySelectorAll("article");
    if (all.length > STEPS_MAX) { newer(steps); [...all].slice(0, all.length - STEPS_MAX).forEach((one) => one.remove()); }
    times();
  };
  let loadingOlder = false;
  const seen = new IntersectionObserver((entries) => {
    const link = document.querySelector("#older a");
    if (!link || loadingOlder || !entries.some((one) => one.isIntersecting)) return;
    loadingOlder = true;
    older(link).catch(() => {}).finally(() => { loadingOlder = false; observe(); });
  }, { rootMargin: "200px" });
  const observe = () => {
    seen.disconnect();
    const more = document.getElementById("older");
    if (more) seen.observe(more);
  };

  // A form decides something: it is sent with the token of its page, and the answer takes the place of the content.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    event.preventDefault();
    const buttons = form.querySelectorAll("button"), body = new URLSearchParams(new FormData(form, event.submitter));
    buttons.forEach((one) => { one.disabled = true; });
    try {
      const token = document.querySelector("meta[name=interlock-token]").content;
      const answer = await fetch(form.action, { method: "POST", headers: { "x-interlock-token": token }, body });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html"), main = document.getElementById("main");
      main.replaceChildren(...page.getElementById("main").childNodes);
      document.title = page.title;
      main.focus();
    } catch {
      state.textContent = "The console does not answer. It is not known whether the answer was recorded: reload the page.";
      buttons.forEach((one) => { one.disabled = false; });
    }
  });

  // Diagnostics as one types: the source is checked after a pause, and nothing is saved.
  let pause = 0;
  document.addEventListener("input", (event) => {
    const source = event.target;
    if (!source.dataset || !source.dataset.check) return;
    clearTimeout(pause);
    // The text has changed, so places in it are not known until it is checked again.
    document.querySelectorAll("[data-write]").forEach((one) => { one.disabled = true; });
    pause = setTimeout(async () => {
      const token = document.querySelector("meta[name=interlock-token]").content;
      const body = new URLSearchParams({ source: source.value });
      try {
        const answer = await fetch(source.dataset.check, { method: "POST", headers: { "x-interlock-token": token }, body });
        const checked = await answer.text();
        if (body.get("source") !== source.value) return;
        const fresh = new DOMParser().parseFromString(checked, "text/html");
        for (const part of ["diagnostics", "preview"]) {
          const found = fresh.getElementById(part);
          if (found) document.getElementById(part).replaceChildren(...found.childNodes);
        }
      } catch { state.textContent = "The console does not answer. The source was not checked."; }
    }, 300);
  });

  document.addEventListener("click", (event) => {
    const place = event.target instanceof Element && event.target.closest("[data-line]");
    const source = document.querySelector("textarea.source");
    if (!place || !source) return;
    const lines = source.value.split("\n"), line = Number(place.dataset.line);
    const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    source.focus();
    source.setSelectionRange(start, start + (lines[line - 1] || "").length);
  });

  // A correction takes the place of what was found; a built-in goes where the cursor is.
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-write], [data-insert]");
    const source = document.querySelector("textarea.source");
    if (!button || !source || source.readOnly) return;
    if (button.dataset.insert) source.setRangeText(button.dataset.insert, source.selectionStart, source.selectionEnd, "select");
    else source.setRangeText(button.dataset.write, Number(button.dataset.start), Number(button.dataset.end), "select");
    source.focus();
    source.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // Also a link of the page leaves it.
  window.addEventListener("beforeunload", (event) => {
    const source = document.querySelector("textarea.source");
    if (source && source.value !== source.defaultValue) event.preventDefault();
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
  });

  // A long log is still being read: ask again until it is.
  let waiting = false;
  const wait = () => {
    if (waiting || !document.querySelector("[data-reading]")) return;
    waiting = true;
    setTimeout(() => refresh().finally(() => { waiting = false; wait(); }), 400);
  };

  let stream = null;
  const live = () => {
    const session = document.body.dataset.live;
    if (!session || !document.getElementById("live")) return;
    if (document.hidden) { stream?.close(); stream = null; return; }
    if (stream) return;
    stream = new EventSource("/live?session=" + encodeURIComponent(session));
    stream.addEventListener("changed", () => refresh());
    // Something may have changed between the page and its stream, or while the stream was lost.
    stream.onopen = () => { state.textContent = ""; refresh(); };
    stream.onerror = () => {
      state.textContent = stream && stream.readyState === EventSource.CLOSED
        ? "The console was started again. Run `interlock console --link` and open the link."
        : "The console does not answer. This page tries again.";
    };
  };

  if (document.querySelector("[data-enter]")) enter();
  times();
  select();
  scrollToTip();
  wait();
  observe();
  live();
  window.addEventListener("hashchange", () => (document.querySelector("[data-enter]") ? enter() : select()));
  document.addEventListener("visibilitychange", () => { if (!document.hidden && stream === null) refresh(); live(); });
  setInterval(times, 60000);
})();
