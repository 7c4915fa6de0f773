"""Tables and pictures from record files; nothing here measures anything."""
