// The live parts of the console. Every page works without this script.
"use strict";

const INTERVAL_MS = 5000;

/** Reads a live page again, and shows its new content in the place of the old. */
async function refresh(main) {
  const answer = await fetch(location.href, {
    headers: { "X-Console-Refresh": "1" },
    credentials: "same-origin",
    cache: "no-store",
    signal: AbortSignal.timeout(10000),
  });
  if (answer.redirected || answer.status === 401) {
    // The session is over.
    location.reload();
    return;
  }
  if (!answer.ok) {
    throw new Error(`the gateway answers ${answer.status}`);
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const content = page.querySelector("main");
  if (!content) {
    throw new Error("the answer is not a page of the console");
  }
  if (!page.querySelector("header").isEqualNode(document.querySelector("header"))) {
    // Another session: the forms of this page would be refused.
    location.reload();
    return;
  }
  replace(main, content);
}

/**
 * Makes an element's children like those of another one. What is equal stays as it is: the focus, a selection, an open
 * detail, and what is typed into a form.
 */
function replace(old, next) {
  const [before, after] = [[...old.childNodes], [...next.childNodes]];
  const isSame = before.length === after.length && before.every((node, index) => node.nodeName === after[index].nodeName);
  if (!isSame) {
    old.replaceChildren(...after);
    return;
  }
  before.forEach((node, index) => {
    const fresh = after[index];
    if (node.nodeName === "FORM" && node.action === fresh.action) {
      return;
    }
    if (node.action !== fresh.action || node.href !== fresh.href) {
      // What is under the pointer or has the focus must not change its meaning.
      node.replaceWith(fresh);
      return;
    }
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.data !== fresh.data) {
        node.data = fresh.data;
      }
      return;
    }
    for (const { name, value } of fresh.attributes ?? []) {
      if (node.getAttribute(name) !== value) {
        node.setAttribute(name, value);
      }
    }
    replace(node, fresh);
  });
}

/** Adds a switch, because nobody must be forced to watch content that changes by itself. */
function addSwitch(main) {
  const [label, box, state] = ["label", "input", "span"].map((name) => document.createElement(name));
  box.type = "checkbox";
  box.checked = remembered() !== "off";
  state.setAttribute("role", "status");
  label.append(box, " Update every 5 seconds ", state);
  label.className = "live";
  main.before(label);
  box.addEventListener("change", () => remembered(box.checked ? "on" : "off"));
  return { isOn: () => box.checked, report: (text) => { state.textContent = text; } };
}

/** Reads or writes the switch's state, which a browser may not allow. */
function remembered(state) {
  try {
    if (state) {
      localStorage.setItem("live", state);
    }
    return localStorage.getItem("live");
  } catch {
    return null;
  }
}

function start() {
  const main = document.querySelector("main[data-live]");
  if (!main) {
    return;
  }
  const live = addSwitch(main);
  let isReading = false;
  setInterval(async () => {
    if (isReading || !live.isOn() || document.hidden) {
      return;
    }
    isReading = true;
    try {
      await refresh(main);
      live.report("");
    } catch (error) {
      live.report(`(not updated: ${error.message})`);
    } finally {
      isReading = false;
    }
  }, INTERVAL_MS);
}

start();
