// The unit tests in Node: bundled, because Node 20 reads no TypeScript; `obsidian` is the stand-in for Node.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "rag-companion-"));
const tests = readdirSync(here(".")).filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: tests.map((name) => here(name)),
  bundle: true,
  platform: "node",
  format: "cjs",
  outdir: folder,
  alias: { obsidian: here("obsidian_node.ts") },
  logLevel: "warning",
});
const files = tests.map((name) => join(folder, name.replace(/ts$/, "js")));
const { status } = spawnSync(process.execPath, ["--test", "--test-force-exit", ...files], { stdio: "inherit" });
rmSync(folder, { recursive: true });
process.exit(status ?? 1);
