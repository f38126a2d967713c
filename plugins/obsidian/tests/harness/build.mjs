// The harness's page as one file: node tests/harness/build.mjs FOLDER
import { copyFileSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = process.argv[2];
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
mkdirSync(folder, { recursive: true });
const node = Object.fromEntries(["fs", "os", "path", "child_process", "http"].map((name) => [name, here("node.ts")]));
await build({
  entryPoints: [here("page.ts")],
  bundle: true,
  format: "iife",
  outfile: `${folder}/page.js`,
  alias: { obsidian: here("obsidian.ts"), ...node },
  logLevel: "warning",
});
for (const name of ["index.html", "theme.css"]) copyFileSync(here(name), `${folder}/${name}`);
copyFileSync(here("../../styles.css"), `${folder}/styles.css`);
