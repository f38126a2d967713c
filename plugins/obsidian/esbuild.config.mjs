// One file for Obsidian: dist/rag-companion/ is the folder that goes to .obsidian/plugins/.
import { copyFileSync, mkdirSync } from "node:fs";
import { builtinModules } from "node:module";
import { build } from "esbuild";

const folder = "dist/rag-companion";
mkdirSync(folder, { recursive: true });
await build({
  entryPoints: ["src/main.ts"],
  bundle: true,
  minify: true,
  format: "cjs",
  target: "es2021",
  outfile: `${folder}/main.js`,
  external: ["obsidian", "electron", "@codemirror/*", "@lezer/*", ...builtinModules],
  logLevel: "warning",
});
// The review builds the plugin and compares main.js at the root with the release's.
copyFileSync(`${folder}/main.js`, "main.js");
for (const file of ["manifest.json", "styles.css"]) copyFileSync(file, `${folder}/${file}`);
