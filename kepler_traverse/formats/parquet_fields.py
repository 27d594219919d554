"""Numbers of fields in parquet.thrift, the definition of Parquet's metadata, by the struct that
holds them.
"""

from __future__ import annotations

# FileMetaData
FILE_SCHEMA = 2
FILE_ROWS = 3
FILE_GROUPS = 4

# SchemaElement; its type has the number that it has in ColumnMetaData
NAME = 4
N_CHILDREN = 5

# RowGroup
GROUP_COLUMNS = 1
GROUP_UNCOMPRESSED = 2
GROUP_ROWS = 3
GROUP_SORTING = 4
GROUP_OFFSET = 5
GROUP_COMPRESSED = 6

# SortingColumn
SORTING_COLUMN = 1
SORTING_DESCENDING = 2
SORTING_NULLS_FIRST = 3

# ColumnChunk: offset and size of the offset index, and of the column index, which has the values
# of pages
ENTRY_METADATA = 3
INDEXES = ((4, 5), (6, 7))

# OffsetIndex
PAGES = 1

# ColumnIndex
NULL_PAGES = 1
MINIMA = 2
MAXIMA = 3
BOUNDARY_ORDER = 4
NULL_COUNTS = 5
LEVELS_OF_PAGES = 7

# ColumnMetaData
TYPE = 1
ENCODINGS = 2
PATH = 3
N_VALUES = 5
UNCOMPRESSED = 6
COMPRESSED = 7
DATA_PAGE = 9
DICTIONARY_PAGE = 11
STATISTICS = 12
ENCODING_STATS = 13
SIZE_STATISTICS = 16

# Statistics: each bound in an old and a new field
MAXIMUM = 5
MINIMUM = 6
MAXIMUM_FIELDS = (1, MAXIMUM)
MINIMUM_FIELDS = (2, MINIMUM)
MAX_AND_MIN = (1, 2, 5, 6)
NULL_COUNT = 3
DISTINCT_COUNT = 4

# SizeStatistics
LEVELS = 3

# PageHeader
PAGE_TYPE = 1
PAGE_UNCOMPRESSED = 2
PAGE_COMPRESSED = 3
PAGE_CRC = 4
PAGE_HEADERS = {0: 5, 2: 7}  # the struct of a data page, and of a dictionary page, by the type
DATA_PAGE_TYPE = 0

# DataPageHeader and DictionaryPageHeader
PAGE_VALUES = 1
PAGE_ENCODING = 2
PAGE_STATISTICS = 5
