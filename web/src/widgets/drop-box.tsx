// A drop zone for files.

import { type ReactNode, useState } from "react";
import styles from "./drop-box.module.css";

interface DropBoxProps {
  readonly label: string;
  readonly children: ReactNode;
  onDrop(data: DataTransfer): void;
}

export function DropBox({ label, children, onDrop }: DropBoxProps) {
  const [isOver, setOver] = useState(false);
  return (
    <section
      className={styles.box}
      aria-label={label}
      data-over={isOver || undefined}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onDrop(event.dataTransfer);
      }}
    >
      {children}
    </section>
  );
}
