/// One way to falsify a stored audit trail with two writers of at least twelve records each.
struct Tampering: Sendable {
    let name: String
    let statements: String
    /// The writer that `audit verify` must name.
    let writer: Int
    /// The first bad record that it must name.
    let sequence: Int

    private init(_ name: String, _ statements: String, writer: Int = 1, at sequence: Int) {
        (self.name, self.statements, self.writer, self.sequence) = (name, statements, writer, sequence)
    }

    /// All ways, for a first writer's chain that ends with this record.
    static func all(last: Int) -> [Tampering] {
        self.flips(last: last) + self.removals(last: last) + self.additions(last: last) + self.heads(last: last)
    }

    /// Every column's value is changed, at the front, in the middle and at the end of a chain.
    private static func flips(last: Int) -> [Tampering] {
        let changes = [
            ("time", "time + 1"), ("tenant", "coalesce(tenant, '') || 'x'"), ("tenant_uid", "tenant_uid + 1"),
            ("body", Self.flipped("body", at: 1)), ("body", Self.flipped("body", at: 9)),
            ("hash", Self.flipped("hash", at: 5)),
        ]
        return changes.flatMap { column, value in
            [1, 6, last]
                .map { sequence in
                    let row = "writer = 1 AND sequence = \(sequence)"
                    let statement = "UPDATE audit_records SET \(column) = \(value) WHERE \(row)"
                    return Tampering("change \(column) of \(sequence) to \(value)", statement, at: sequence)
                }
        }
    }

    /// A blob with another value at one byte, counted from 1.
    private static func flipped(_ column: String, at byte: Int) -> String {
        let other = "CASE substr(\(column), \(byte), 1) WHEN x'00' THEN x'01' ELSE x'00' END"
        return "CAST(substr(\(column), 1, \(byte - 1)) || \(other) || substr(\(column), \(byte + 1)) AS BLOB)"
    }

    private static func removals(last: Int) -> [Tampering] {
        func delete(_ condition: String) -> String { "DELETE FROM audit_records WHERE writer = 1 AND \(condition)" }
        let closed = delete("sequence = 6") + Self.shift("sequence > 6", by: -1)
        return [
            Tampering("delete the first", delete("sequence = 1"), at: 1),
            Tampering("delete one", delete("sequence = 6"), at: 6),
            Tampering("delete the last", delete("sequence = \(last)"), at: last),
            Tampering("delete one and close the gap", closed, at: 6),
            Tampering("delete all", delete("true"), at: 1),
            Tampering("delete the first writer", delete("true") + "; DELETE FROM audit_heads WHERE writer = 1", at: 1),
        ]
    }

    private static func additions(last: Int) -> [Tampering] {
        func copy(_ sequence: Int, to other: Int, writer: Int = 1) -> String {
            """
            ; INSERT INTO audit_records SELECT \(writer), \(other), time, tenant, tenant_uid, body, hash
            FROM audit_records WHERE writer = 1 AND sequence = \(sequence);
            """
        }
        func swap(_ one: Int, _ other: Int) -> String {
            Self.move(one, to: 1_000) + Self.move(other, to: one) + Self.move(1_000, to: other)
        }
        return [
            Tampering("swap two neighbours", swap(6, 7), at: 6),
            Tampering("swap the first and the last", swap(1, last), at: 1),
            Tampering("insert one", Self.shift("sequence > 6", by: 1) + copy(6, to: 7), at: 7),
            Tampering("insert one in front", Self.shift("true", by: 1) + copy(7, to: 1), at: 1),
            Tampering("insert one at the end", copy(6, to: last + 1), at: last + 1),
            Tampering("insert a writer", copy(1, to: 1, writer: 3), writer: 3, at: 1),
        ]
    }

    private static func heads(last: Int) -> [Tampering] {
        func change(_ text: String) -> String { "UPDATE audit_heads SET \(text) WHERE writer = 1" }
        let cut = """
            DELETE FROM audit_records WHERE writer = 1 AND sequence = \(last);
            UPDATE audit_heads SET sequence = \(last - 1), hash =
            (SELECT hash FROM audit_records WHERE writer = 1 AND sequence = \(last - 1)) WHERE writer = 1
            """
        return [
            Tampering("reopen", change("state = 'open'"), at: last),
            Tampering("change the seal", change("seal = \(Self.flipped("seal", at: 3))"), at: last),
            Tampering("cut the end off, head and all", cut, at: last - 1),
        ]
    }

    private static func move(_ sequence: Int, to other: Int) -> String {
        "; UPDATE audit_records SET sequence = \(other) WHERE writer = 1 AND sequence = \(sequence);"
    }

    /// Moves many at once; over a detour, because no two may ever be in one place.
    private static func shift(_ condition: String, by distance: Int) -> String {
        """
        ; UPDATE audit_records SET sequence = -sequence WHERE writer = 1 AND \(condition);
        UPDATE audit_records SET sequence = -sequence + \(distance) WHERE writer = 1 AND sequence < 0;
        """
    }
}
