// The dashboard. It asks the server for what any client may ask for, and shows it. This is the first of
// the files that make up the script; the last one starts it.
//
// Whatever comes from the server becomes text of an element, never markup: `make` is the only way in
// which elements come about.
"use strict";

const $ = (id) => document.getElementById(id);

/** Makes an element with properties and children. Children that are no elements become text. */
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function drawn(name, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function note(text) {
  const line = make("p", {}, text);
  $("notes").append(line);
  setTimeout(() => line.remove(), 5000);
}

// ---- How things read ------------------------------------------------------------------------------

function count(value) {
  if (!Number.isFinite(value)) return "–";
  if (value >= 1e9) return (value / 1e9).toFixed(2) + " G";
  if (value >= 1e6) return (value / 1e6).toFixed(2) + " M";
  if (value >= 1e4) return (value / 1e3).toFixed(1) + " k";
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at + 1 < units.length) {
    value /= 1024;
    at += 1;
  }
  return (at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)) + " " + units[at];
}

function time(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1e-3) return Math.round(seconds * 1e6) + " µs";
  if (seconds < 1) return (seconds * 1e3).toFixed(seconds < 0.01 ? 1 : 0) + " ms";
  return seconds.toFixed(1) + " s";
}

function span(seconds) {
  if (seconds < 60) return Math.round(seconds) + " s";
  if (seconds < 3600) return Math.floor(seconds / 60) + " min " + Math.round(seconds % 60) + " s";
  if (seconds < 86400) return Math.floor(seconds / 3600) + " h " + Math.floor((seconds % 3600) / 60) + " min";
  return Math.floor(seconds / 86400) + " d " + Math.floor((seconds % 86400) / 3600) + " h";
}

/** A string of the server: text, or bytes that are no text. */
const isBinary = (value) => value !== null && typeof value === "object" && typeof value.base64 === "string";

/** A name in an object: one that is no text is the text of its base64 form. */
const named = (name) => (/^\{"base64":"[A-Za-z0-9+/=]*"\}$/.test(name) ? JSON.parse(name) : name);

function shown(value) {
  if (isBinary(value)) {
    return Array.from(atob(value.base64), (c) => {
      const code = c.charCodeAt(0);
      return code >= 32 && code < 127 ? c : "\\x" + code.toString(16).padStart(2, "0");
    }).join("");
  }
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A key as the end of an address. */
function encoded(key) {
  if (!isBinary(key)) return encodeURIComponent(key);
  return Array.from(atob(key.base64), (c) => "%" + c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

/** The key that an address ends with: text, or bytes that are no text. */
function decoded(text) {
  const spread = text.replace(/[^%\x00-\x7f]+/g, encodeURIComponent);
  const bytes = spread.replace(/%([0-9a-f]{2})/gi, (_, digits) => String.fromCharCode(parseInt(digits, 16)));
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
  } catch {
    return { base64: btoa(bytes) };
  }
}

const sameKey = (one, other) => one !== null && other !== null && encoded(one) === encoded(other);

/** How long a key lives still, of milliseconds as PTTL tells them. */
const lives = (milliseconds) => (milliseconds > 0 ? span(milliseconds / 1000) : "–");

/** How many elements a value of this type has is what this command answers. */
const LENGTH = { string: "STRLEN", list: "LLEN", set: "SCARD", hash: "HLEN", zset: "ZCARD", stream: "XLEN" };

/** How many elements, or bytes of a string. */
function length(type, number) {
  if (!Number.isFinite(number)) return "–";
  if (type === "string") return bytes(number);
  return `${count(number)} ${number === 1 ? "element" : "elements"}`;
}

// ---- The server -----------------------------------------------------------------------------------

// "PASSWORD", or "NAME:PASSWORD".
let token = sessionStorage.getItem("dunlin-token");
let database = Number(sessionStorage.getItem("dunlin-db") || 0);

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** A header has bytes, and a password may have other letters. */
const asBytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token !== null) headers.Authorization = "Bearer " + asBytes(token);
  // Without credentials, the browser does not open a window of its own when the password is missing.
  const answer = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
  if (answer.status === 401) {
    logIn(token !== null);
    throw new Refused(401, "The password is missing.");
  }
  if (!answer.ok && answer.status !== 304) {
    const text = await answer.text();
    let reason = text;
    try {
      reason = JSON.parse(text).error || text;
    } catch {
      // It is said as it came.
    }
    throw new Refused(answer.status, reason || "status " + answer.status);
  }
  return answer;
}

const withDatabase = (path) => path + (path.includes("?") ? "&" : "?") + "db=" + database;

/** Runs commands; an answer that is an error becomes what `failed` makes of it. */
async function tries(list, failed) {
  const answer = await ask(withDatabase("/v1/pipeline"), { method: "POST", body: JSON.stringify(list) });
  return (await answer.json()).map((one) => ("error" in one ? failed(one.error) : one.result));
}

const commands = (list) =>
  tries(list, (error) => {
    throw new Refused(error.startsWith("NOPERM") ? 403 : 400, error);
  });

function logIn(wrong) {
  $("login-reason").textContent = wrong ? "That is not right." : "This server asks for a password.";
  if (!$("login").open) $("login").showModal();
  $("password").focus();
}

$("login").addEventListener("cancel", (event) => event.preventDefault());
$("login").addEventListener("submit", () => {
  const name = $("user").value.trim();
  token = (name === "" ? "" : name + ":") + $("password").value;
  $("password").value = "";
  sessionStorage.setItem("dunlin-token", token);
  start();
});
$("logout").addEventListener("click", () => {
  token = null;
  sessionStorage.removeItem("dunlin-token");
  location.replace("/");
});
