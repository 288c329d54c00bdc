// Files and folders that were dropped or chosen, with their paths. Does not read them.

export interface FileToSend {
  /** Within what was dropped: `run3/rank0.json.gz`. */
  readonly path: string;
  readonly file: File;
}

/** A folder's files with their places in it; must be asked before the drop is over. */
export async function listDropped(items: DataTransferItemList): Promise<readonly FileToSend[]> {
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return (await Promise.all(entries.map((entry) => listEntry(entry, "")))).flat();
}

export function listChosen(files: FileList): readonly FileToSend[] {
  return [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

async function listEntry(entry: FileSystemEntry, folder: string): Promise<readonly FileToSend[]> {
  const path = `${folder}${entry.name}`;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: FileToSend[] = [];
  // A reader gives a folder in parts and an empty one at its end.
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return found;
    found.push(...(await Promise.all(part.map((each) => listEntry(each, `${path}/`)))).flat());
  }
}

/** What the trace is called: the folder, or what the names of its files have in common. */
export function nameTrace(files: readonly FileToSend[]): string {
  const [first] = files;
  if (first === undefined) return "trace";
  const folder = first.path.split("/").at(0) ?? "";
  if (first.path.includes("/") && files.every(({ path }) => path.startsWith(`${folder}/`))) return folder;
  let shared = first.file.name;
  for (const { file } of files) {
    while (shared !== "" && !file.name.startsWith(shared)) shared = shared.slice(0, -1);
  }
  const bare = (shared.length >= 3 ? shared : first.file.name).replace(/(\.[a-z]\w*)+$/i, "").replace(/[\W_]+$/, "");
  return bare.replace(/[\W_]*(rank|worker|node)$/i, "") || bare || "trace";
}
