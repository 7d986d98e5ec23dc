/// One way to falsify a stored audit trail with two writers of at least twelve records each.
struct Tampering: Sendable {
    /// What is done.
    let name: String
    /// The statements that do it.
    let statements: String
    /// The writer that `audit verify` must name.
    let writer: Int
    /// The first bad record that it must name.
    let sequence: Int

    /// All ways, for a first writer's chain that ends with this record.
    static func all(last: Int) -> [Tampering] {
        self.flips(last: last) + self.removals(last: last) + self.additions(last: last) + self.heads(last: last)
    }

    /// Every column's value is changed, at the front, in the middle and at the end of a chain.
    private static func flips(last: Int) -> [Tampering] {
        let changes = [
            ("time", "time + 1"),
            ("tenant", "coalesce(tenant, '') || 'x'"),
            ("tenant_uid", "tenant_uid + 1"),
            ("body", Self.flipped("body", at: 1)),
            ("body", Self.flipped("body", at: 9)),
            ("hash", Self.flipped("hash", at: 5)),
        ]
        var flips: [Tampering] = []
        for (column, value) in changes {
            for sequence in [1, 6, last] {
                flips.append(
                    Tampering(
                        name: "change \(column) of \(sequence) to \(value)",
                        statements: """
                            UPDATE audit_records SET \(column) = \(value) WHERE writer = 1 AND sequence = \(sequence)
                            """,
                        writer: 1,
                        sequence: sequence
                    )
                )
            }
        }
        return flips
    }

    /// A blob with another value at one byte, counted from 1.
    private static func flipped(_ column: String, at byte: Int) -> String {
        let other = "CASE substr(\(column), \(byte), 1) WHEN x'00' THEN x'01' ELSE x'00' END"
        return "CAST(substr(\(column), 1, \(byte - 1)) || \(other) || substr(\(column), \(byte + 1)) AS BLOB)"
    }

    private static func removals(last: Int) -> [Tampering] {
        func delete(_ condition: String) -> String { "DELETE FROM audit_records WHERE writer = 1 AND \(condition)" }
        return [
            Tampering(name: "delete the first", statements: delete("sequence = 1"), writer: 1, sequence: 1),
            Tampering(name: "delete one", statements: delete("sequence = 6"), writer: 1, sequence: 6),
            Tampering(name: "delete the last", statements: delete("sequence = \(last)"), writer: 1, sequence: last),
            Tampering(
                name: "delete one and close the gap",
                statements: delete("sequence = 6") + Self.shift("sequence > 6", by: -1),
                writer: 1,
                sequence: 6
            ),
            Tampering(name: "delete all", statements: delete("true"), writer: 1, sequence: 1),
            Tampering(
                name: "delete the first writer",
                statements: delete("true") + "; DELETE FROM audit_heads WHERE writer = 1",
                writer: 1,
                sequence: 1
            ),
        ]
    }

    private static func additions(last: Int) -> [Tampering] {
        func copy(_ sequence: Int, to other: Int, writer: Int = 1) -> String {
            """
            ; INSERT INTO audit_records SELECT \(writer), \(other), time, tenant, tenant_uid, body, hash
            FROM audit_records WHERE writer = 1 AND sequence = \(sequence);
            """
        }
        return [
            Tampering(
                name: "swap two neighbours",
                statements: Self.move(6, to: 1_000) + Self.move(7, to: 6) + Self.move(1_000, to: 7),
                writer: 1,
                sequence: 6
            ),
            Tampering(
                name: "swap the first and the last",
                statements: Self.move(1, to: 1_000) + Self.move(last, to: 1) + Self.move(1_000, to: last),
                writer: 1,
                sequence: 1
            ),
            Tampering(
                name: "insert one",
                statements: Self.shift("sequence > 6", by: 1) + copy(6, to: 7),
                writer: 1,
                sequence: 7
            ),
            Tampering(
                name: "insert one in front",
                statements: Self.shift("true", by: 1) + copy(7, to: 1),
                writer: 1,
                sequence: 1
            ),
            Tampering(name: "insert one at the end", statements: copy(6, to: last + 1), writer: 1, sequence: last + 1),
            Tampering(name: "insert a writer", statements: copy(1, to: 1, writer: 3), writer: 3, sequence: 1),
        ]
    }

    private static func heads(last: Int) -> [Tampering] {
        func change(_ text: String) -> String { "UPDATE audit_heads SET \(text) WHERE writer = 1" }
        return [
            Tampering(name: "reopen", statements: change("state = 'open'"), writer: 1, sequence: last),
            Tampering(
                name: "change the seal",
                statements: change("seal = \(Self.flipped("seal", at: 3))"),
                writer: 1,
                sequence: last
            ),
            Tampering(
                name: "cut the end off, head and all",
                statements: """
                    DELETE FROM audit_records WHERE writer = 1 AND sequence = \(last);
                    UPDATE audit_heads SET sequence = \(last - 1), hash =
                    (SELECT hash FROM audit_records WHERE writer = 1 AND sequence = \(last - 1)) WHERE writer = 1
                    """,
                writer: 1,
                sequence: last - 1
            ),
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
