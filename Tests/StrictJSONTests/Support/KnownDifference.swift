/// The ways in which this reader and Foundation's may differ; there must be no others.
enum KnownDifference: String, CaseIterable {
    /// We refuse two members of one name in an object; Foundation keeps one of them.
    case duplicateNames
    /// We refuse deep nesting within Foundation's own bound of 512 levels.
    case tooDeep
    /// We refuse many members.
    case tooManyMembers
    /// Foundation accepts a comma before a closing bracket.
    case trailingComma
    /// Foundation passes over a byte-order mark in front of UTF-8.
    case byteOrderMark
    /// Foundation reads UTF-16 and UTF-32.
    case otherEncoding
    /// Foundation refuses numbers that no `Double` can hold; we keep their text.
    case numberOverflow
    /// Foundation keeps one of two names that differ only in their Unicode normalisation, or in a U+FEFF it drops.
    case equivalentNames
    /// Foundation drops U+FEFF where a string, or a piece of one, starts with it.
    case byteOrderMarkInString
}
