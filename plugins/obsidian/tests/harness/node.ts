/** Node's modules in a browser: files and programs of the machine, by way of the test's server. */

function told(kind: string, path: string): { ok: boolean; text: string } {
  const request = new XMLHttpRequest();
  request.open("GET", `/fs/${kind}?path=${encodeURIComponent(path)}`, false);
  request.send();
  return { ok: request.status === 200, text: request.responseText };
}

function need(kind: string, path: string): string {
  const { ok, text } = told(kind, path);
  if (!ok) throw new Error(`ENOENT ${path}`);
  return text;
}

const readFileSync = (path: string): string => need("read", path);
const accessSync = (path: string): void => void need("program", path);
const statSync = (path: string): { isFile(): boolean } => ({ isFile: () => told("program", path).ok });
const realpathSync = Object.assign((path: string) => path, { native: (path: string): string => need("real", path) });
const constants = { X_OK: 1 };

const homedir = (): string => "/home/tester";
const delimiter = ":";
const join = (...parts: string[]): string => parts.join("/").replace(/\/+/g, "/");
const resolve = (path: string): string => path;
const isAbsolute = (path: string): boolean => path.startsWith("/");

function execFile(program: string, words: string[], options: { env?: Record<string, string> }, done: (error: Error | null, stdout: string) => void): void {
  const body = JSON.stringify({ program, words, env: options.env ?? {} });
  void fetch("/exec", { method: "POST", body }).then(async (reply) => {
    const { code, stdout } = (await reply.json()) as { code: number; stdout: string };
    done(code ? new Error(String(code)) : null, stdout);
  });
}

export { accessSync, constants, delimiter, execFile, homedir, isAbsolute, join, readFileSync, realpathSync, resolve, statSync };
export default { request: (): never => { throw new Error("the browser has its own transport"); } };
