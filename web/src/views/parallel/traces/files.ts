// Lists dropped or chosen files and folders with their paths. Does not read them.

export interface FileToSend {
  /** Relative to the dropped folder: `run3/rank0.json.gz`. */
  readonly path: string;
  readonly file: File;
}

/** All files with their paths; must be called during the drop event. */
export async function listDroppedFiles(items: DataTransferItemList): Promise<readonly FileToSend[]> {
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return (await Promise.all(entries.map((entry) => listEntry(entry, "")))).flat();
}

export function listChosenFiles(files: FileList): readonly FileToSend[] {
  return [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

async function listEntry(entry: FileSystemEntry, folder: string): Promise<readonly FileToSend[]> {
  const path = `${folder}${entry.name}`;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const files: FileToSend[] = [];
  // A reader returns a folder in parts, then an empty part.
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return files;
    files.push(...(await Promise.all(part.map((child) => listEntry(child, `${path}/`)))).flat());
  }
}

/** The name of a trace: the folder, or the common prefix of its files. */
export function nameTrace(files: readonly FileToSend[]): string {
  const [first] = files;
  if (first === undefined) return "trace";
  const folder = first.path.split("/").at(0) ?? "";
  if (first.path.includes("/") && files.every(({ path }) => path.startsWith(`${folder}/`))) return folder;
  let prefix = first.file.name;
  for (const { file } of files) {
    while (prefix !== "" && !file.name.startsWith(prefix)) prefix = prefix.slice(0, -1);
  }
  const stem = (prefix.length >= 3 ? prefix : first.file.name).replace(/(\.[a-z]\w*)+$/i, "").replace(/[\W_]+$/, "");
  return stem.replace(/[\W_]*(rank|worker|node)$/i, "") || stem || "trace";
}
