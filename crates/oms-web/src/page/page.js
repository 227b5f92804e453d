// Asks for a frame once a second and shows it. Nothing that a frame says is ever taken for HTML.
"use strict";

const PERIOD_MS = 1000;
const ACT_CELL = 13;
// Where this tab keeps the token of its login: unlike a cookie it goes to no other port and to no other page.
const STORED = "tickpath-token";
const byId = id => document.getElementById(id);
let token = sessionStorage.getItem(STORED);
let timer = null;
let failures = 0;

function text(tag, value, className) {
  const element = document.createElement(tag);
  element.textContent = value;
  if (className) element.className = className;
  return element;
}

// Rows of cells; a cell is a value, or [value, class]. Only what has changed is touched, so that a selection stays.
function fill(section, rows, nothing) {
  const body = byId(section).querySelector("tbody");
  const heads = byId(section).querySelectorAll("th");
  if (rows.length === 0) {
    const row = document.createElement("tr"), cell = text("td", nothing, "none");
    cell.colSpan = heads.length;
    row.append(cell);
    if (body.textContent !== nothing) body.replaceChildren(row);
    return;
  }
  if (body.querySelector(".none")) body.replaceChildren();
  rows.forEach((cells, at) => {
    const row = body.rows[at] || body.insertRow();
    cells.forEach((cell, place) => {
      const [value, className] = Array.isArray(cell) ? cell : [cell, ""];
      const held = row.cells[place] || row.insertCell();
      const wanted = `${heads[place].classList.contains("text") ? "text " : ""}${className}`.trim();
      if (place !== ACT_CELL && held.textContent !== String(value)) held.textContent = value;
      if (held.className !== wanted) held.className = wanted;
    });
  });
  while (body.rows.length > rows.length) body.deleteRow(-1);
}

function pairs(list, entries) {
  const wanted = entries.map(([name, value]) => `${name}\n${value}`).join("\n\n");
  if (list.dataset.shown === wanted) return;
  list.dataset.shown = wanted;
  list.replaceChildren(...entries.map(([name, value]) => {
    const pair = document.createElement("div");
    pair.append(text("dt", name), text("dd", value));
    return pair;
  }));
}

const whole = number => Number(number).toLocaleString("en-US");

function duration(ns) {
  if (ns === null) return "–";
  if (ns < 1e3) return `${ns} ns`;
  const [value, unit] = ns < 1e6 ? [ns / 1e3, "µs"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit}`;
}

const word = state => [state, { "up": "good", "logged in": "good", "down": "bad" }[state] || ""];

function show(frame) {
  document.title = `${frame.oms} · ${frame.alarms.length ? `${frame.alarms.length} alarms` : frame.state}`;
  byId("oms").textContent = frame.oms;
  const state = byId("state");
  state.textContent = frame.state;
  state.className = `word ${frame.pid ? "good" : "bad"}`;
  const level = name => whole(frame.levels[name] || 0);
  pairs(byId("facts"), [
    ["process", frame.pid || "–"], ["epoch", frame.epoch], ["requests/s", whole(frame.requests_per_second)],
    ["sessions", level("sessions")], ["record", whole(frame.record)], ["held", level("held")],
  ]);
  const alarms = byId("alarms");
  if (alarms.dataset.shown !== frame.alarms.join("\n")) {
    alarms.dataset.shown = frame.alarms.join("\n");
    alarms.replaceChildren(...frame.alarms.map(alarm => text("li", alarm)));
  }
  const since = { "its start": "all requests since its start", "": "" };
  byId("latency").querySelector("small").textContent = since[frame.hops_of] ?? `requests of ${frame.hops_of}`;
  fill("latency", frame.hops.map(hop => [hop.hop.replace("_", " → ").toUpperCase(), whole(hop.count),
    ...[hop.p50_ns, hop.p90_ns, hop.p99_ns, hop.p999_ns, hop.max_ns].map(duration)]), "no requests yet");
  const states = ["queued", "sending", "working", "unknown", "done", "rejected", "withdrawn"];
  pairs(byId("levels").querySelector("dl"),
    [...states.map(name => [name, level(name)]), ["denied requests", level("denied_requests")]]);
  fill("lines", frame.lines.map(line => [line.venue, word(line.state), whole(line.waiting), whole(line.open_orders)]),
    "no venues");
  const here = frame.sessions.filter(session => session.state === "logged in").length;
  byId("sessions").querySelector("small").textContent = `${here} of ${frame.sessions.length} logged in`;
  fill("sessions", frame.sessions.map(session => [session.session, session.user, word(session.state),
    whole(session.open_orders), whole(session.requests), whole(session.denied)]), "no sessions");
  byId("positions").querySelector("small").textContent = more(frame.positions_left_out);
  fill("positions", frame.positions.map(position => [position.account, position.symbol, position.net,
    position.working_buy, position.working_sell]), "all flat");
  fill("denials", frame.denials.map(([reason, count]) => [reason.replaceAll("_", " "), whole(count)]), "none");
  const open = frame.orders.length + frame.orders_left_out;
  byId("orders").querySelector("small").textContent = `${whole(open)} ${more(frame.orders_left_out)}`;
  fill("orders", frame.orders.map(order => [order.id, order.client_order_id, order.session, order.account,
    order.symbol, order.venue, order.side, order.quantity, order.filled, order.leaves, order.price, order.status, order.when,
    ""]), "none");
  offerCancels(frame.admin);
  showUser(frame.user, frame.admin);
}

// A button in each row of an open order, while an admin is logged in. It reads the row that it is in when it is pressed.
function offerCancels(admin) {
  for (const row of byId("orders").querySelectorAll("tbody tr")) {
    const cell = row.cells[ACT_CELL], held = cell && cell.querySelector("button");
    if (!cell || Boolean(held) === Boolean(admin)) continue;
    if (held) held.remove();
    else cell.append(Object.assign(text("button", "cancel", "danger"), { type: "button" }));
  }
}

const more = count => count ? `(the newest; ${whole(count)} more are not shown)` : "";

function showUser(user, admin) {
  byId("login").hidden = byId("show-login").hidden = true;
  byId("user").hidden = byId("logout").hidden = document.querySelector("main").hidden = false;
  byId("kill").hidden = !admin;
  byId("user").textContent = admin ? `${user}, admin` : user;
  if (admin && admin.denied) byId("orders").querySelector(".said").textContent = admin.denied;
}

// Nobody is logged in: nothing that was shown stays.
function showLogin() {
  token = null;
  sessionStorage.removeItem(STORED);
  document.title = "OMS";
  byId("state").textContent = "log in to see it";
  byId("state").className = "word";
  for (const id of ["user", "logout", "kill"]) byId(id).hidden = true;
  document.querySelector("main").hidden = true;
  document.querySelectorAll("tbody").forEach(body => body.replaceChildren());
  for (const list of [byId("facts"), byId("levels").querySelector("dl"), byId("alarms")]) {
    delete list.dataset.shown;
    list.replaceChildren();
  }
  byId("login").hidden = !byId("show-login").hidden;
}

async function look() {
  clearTimeout(timer);
  if (!token) return showLogin();
  const asked = token;
  try {
    const answer = await fetch("/frame", {
      cache: "no-store", headers: { "x-tickpath-token": asked }, signal: AbortSignal.timeout(5000),
    });
    if (answer.status === 401 && asked === token) return showLogin();
    if (!answer.ok) throw new Error(await answer.text());
    const frame = await answer.json();
    if (asked === token) show(frame);
    failures = 0;
  } catch (error) {
    failures += 1;
    if (failures > 1) {
      byId("state").textContent = "no answer: these are the last figures";
      byId("state").className = "word bad";
    }
  }
  clearTimeout(timer);
  timer = setTimeout(look, PERIOD_MS);
}

async function ask(path, body, said) {
  said.textContent = "…";
  try {
    const answer = await fetch(path, {
      method: "POST", body: JSON.stringify(body),
      headers: { "content-type": "application/json", ...(token ? { "x-tickpath-token": token } : {}) },
    });
    const words = await answer.text();
    said.textContent = answer.ok ? "" : words.trim();
    if (answer.ok && path === "/login") {
      token = JSON.parse(words).token;
      sessionStorage.setItem(STORED, token);
    }
    if (path === "/logout") token = null;
    await look();
    return answer.ok;
  } catch (error) {
    said.textContent = "the OMS does not answer; is it running?";
    return false;
  }
}

byId("show-login").addEventListener("click", () => {
  byId("login").hidden = false;
  byId("show-login").hidden = true;
  byId("login").elements.user.focus();
});
byId("cancel-login").addEventListener("click", () => {
  byId("login").hidden = true;
  byId("login").reset();
  byId("show-login").hidden = false;
});
byId("login").addEventListener("submit", async event => {
  event.preventDefault();
  const form = event.target, { user, password } = form.elements;
  const came = await ask("/login", { user: user.value, password: password.value }, form.querySelector(".said"));
  password.value = "";
  if (came) form.reset();
});
byId("logout").addEventListener("click", () => ask("/logout", {}, byId("kill").querySelector(".said")));
byId("kill").elements.scope.addEventListener("change", event => {
  const target = byId("kill").elements.target;
  target.disabled = event.target.value === "firm";
  target.placeholder = { account: "account number", session: "session number", symbol: "instrument", firm: "" }[event.target.value];
});
byId("kill").addEventListener("submit", async event => {
  event.preventDefault();
  const form = event.target, { scope, target } = form.elements;
  const word = event.submitter.value, stop = word === "stop", cancel = word !== "go";
  const what = scope.value === "firm" ? "the firm" : `${scope.value} ${target.value}`;
  const question = stop ? `Stop all trading of ${what}, and cancel its open orders?` : `Cancel all open orders of ${what}?`;
  if (cancel && !confirm(question)) return;
  const said = form.querySelector(".said");
  if (await ask("/kill", { scope: scope.value, target: target.value, on: stop, cancel }, said)) {
    said.textContent = `said: ${event.submitter.textContent}, ${what}`;
  }
});
byId("orders").addEventListener("click", async event => {
  const button = event.target.closest("button");
  if (!button) return;
  const order = button.closest("tr").cells[0].textContent;
  if (!confirm(`Cancel order ${order}?`)) return;
  const said = byId("orders").querySelector(".said");
  if (await ask("/cancel", { order }, said)) said.textContent ||= `said: cancel ${order}`;
});
look();
