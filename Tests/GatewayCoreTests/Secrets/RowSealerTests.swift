import GatewayCore
import GatewayTestKit
import Testing

struct RowSealerTests {
    private let sealer = RowSealer(keyPepper: .sample("pepper"))

    @Test("A seal is for one row alone: neither parts nor tables nor absent columns can be taken for others")
    func distinct() {
        let rows: [([[UInt8]?], String)] = [
            ([[1, 2], [3]], "a"), ([[1], [2, 3]], "a"), ([[1, 2, 3]], "a"), ([[1, 2], [3], nil], "a"),
            ([[1, 2], [3], []], "a"), ([nil, [1, 2], [3]], "a"), ([[1, 2], [3]], "b"), ([[], []], "a"),
            ([nil, nil], "a"),
            ([], "a"), ([Array("1:a".utf8)], ""),
        ]
        #expect(Set(rows.map { self.sealer.seal(of: $0.0, in: $0.1) }).count == rows.count)
        for (columns, table) in rows {
            let seal = self.sealer.seal(of: columns, in: table)
            #expect(seal.count == 32)
            #expect(self.sealer.isGenuine(seal, of: columns, in: table))
            #expect(!self.sealer.isGenuine([], of: columns, in: table))
            #expect(!RowSealer(keyPepper: .sample("other")).isGenuine(seal, of: columns, in: table))
        }
    }
}
