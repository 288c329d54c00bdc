// Chooses the theme: light, dark, or that of the system.

import { IconButton } from "../../widgets/button.tsx";
import { Icon, type IconName } from "../../widgets/icon.tsx";
import { Menu, MenuChoices } from "../../widgets/menu.tsx";
import { setTheme, THEMES, type Theme, useTheme } from "../theme.ts";

const LOOKS: Readonly<Record<Theme, { readonly title: string; readonly icon: IconName }>> = {
  system: { title: "System", icon: "screen" },
  light: { title: "Light", icon: "sun" },
  dark: { title: "Dark", icon: "moon" },
};

const CHOICES = THEMES.map((value) => ({
  value,
  title: LOOKS[value].title,
  mark: <Icon name={LOOKS[value].icon} size={14} />,
}));

export function ThemeMenu() {
  const theme = useTheme();
  return (
    <Menu trigger={<IconButton icon={LOOKS[theme].icon} label="Theme" />}>
      <MenuChoices value={theme} choices={CHOICES} onChoose={setTheme} />
    </Menu>
  );
}
