// Chooses light, dark, or as the system says.

import * as Menu from "@radix-ui/react-dropdown-menu";
import { IconButton } from "../../widgets/button.tsx";
import { Icon, type IconName } from "../../widgets/icon.tsx";
import { setTheme, THEMES, type Theme, useTheme } from "../theme.ts";
import styles from "./menu.module.css";

const LOOKS: Readonly<Record<Theme, { readonly title: string; readonly icon: IconName }>> = {
  system: { title: "As the system", icon: "screen" },
  light: { title: "Light", icon: "sun" },
  dark: { title: "Dark", icon: "moon" },
};

export function ThemeMenu() {
  const theme = useTheme();
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild>
        <IconButton icon={LOOKS[theme].icon} label="Theme" />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className={styles.menu} align="end" sideOffset={6} collisionPadding={8}>
          <Menu.RadioGroup value={theme}>
            {THEMES.map((name) => (
              <Menu.RadioItem key={name} value={name} className={styles.item} onSelect={() => setTheme(name)}>
                <Icon name={LOOKS[name].icon} size={14} />
                <span>{LOOKS[name].title}</span>
                <Menu.ItemIndicator>
                  <Icon name="check" size={12} />
                </Menu.ItemIndicator>
              </Menu.RadioItem>
            ))}
          </Menu.RadioGroup>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
