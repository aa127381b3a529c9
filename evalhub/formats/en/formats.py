"""Dates and times of the administration as the other pages write them: the day first, the month in letters."""

DATE_FORMAT = "j M Y"
SHORT_DATE_FORMAT = DATE_FORMAT
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j M Y, H:i"
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
