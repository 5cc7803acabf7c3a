// Requests to the program. The token came behind "#" in the address. It is kept in this tab alone, and taken out of
// the address, so that no bookmark and no screen has it.

const KEPT = "talkpath-token";

const given = /^#([0-9a-f]{32})$/.exec(location.hash);
if (given) {
  sessionStorage.setItem(KEPT, given[1]);
  history.replaceState(null, "", "#/compare");
}

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEPT) ?? ""}`, ...options.headers };
  let reply;
  try {
    reply = await fetch(`/api/${path}`, { ...options, headers });
  } catch {
    throw new Error("The window has ended: start talkpath ui again. Runs that were going on are in its folder.");
  }
  const body = await reply.json().catch(() => ({ error: `the program answered ${reply.status}` }));
  if (!reply.ok) throw new Error(body.error);
  return body;
}

export const get = (path) => ask(path);

export const post = (path, body) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// Gives a file to the program, and returns its name there.
export async function give(file, prefix = "") {
  const name = prefix + (file.name.replace(/[^A-Za-z0-9._-]/g, "_").replace(/^\.+/, "") || "file");
  await ask("upload", { method: "POST", headers: { "x-file-name": name }, body: file });
  return name;
}
