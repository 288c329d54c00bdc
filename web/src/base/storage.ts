// What this browser remembers between visits. A browser that may not remember simply forgets.

export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function writeStored(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Private windows and full disks refuse; the choice then lasts as long as the page.
  }
}
