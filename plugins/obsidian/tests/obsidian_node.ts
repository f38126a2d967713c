/** The few functions of Obsidian that modules without a screen use. */

export function normalizePath(path: string): string {
  return path.replace(/[\\/]+/g, "/").replace(/^\/|\/$/g, "").normalize("NFC");
}
