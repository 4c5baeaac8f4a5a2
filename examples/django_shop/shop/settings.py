"""The settings that a shop needs to run its jobs."""

import os

SECRET_KEY = os.environ.get("SECRET_KEY", "for development only")
INSTALLED_APPS = ["shop"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ.get("SHOP_DB", "shop.sqlite3")}
}
TICKOFF_URL = os.environ.get("TICKOFF_URL", "redis://localhost:6379/0")
