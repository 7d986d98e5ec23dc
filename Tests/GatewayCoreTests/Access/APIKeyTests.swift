import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("APIKey")
struct APIKeyTests {
    private static let id = "abcdefghij"
    private static let secret = "Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Z"
    private static let known = "fgw_abcdefghij_Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Z_25P42x"

    @Test("A generated key parses to the same id and secret")
    func roundTrip() throws {
        for _ in 0..<200 {
            let key = APIKey.generate()
            let text = key.secret.revealText()
            #expect(text.utf8.count == 65)
            let read = try #require(APIKey(text))
            #expect(read.id == key.id)
            #expect(read.secret.revealText() == text)
        }
    }

    @Test("Generated keys differ in id and secret")
    func fresh() {
        let keys = (0..<200).map { _ in APIKey.generate() }
        #expect(Set(keys.map(\.id)).count == keys.count)
        #expect(Set(keys.map { $0.secret.revealText().split(separator: "_")[2] }).count == keys.count)
    }

    @Test("The text of a known key parses to its id and secret")
    func knownKey() throws {
        let key = try #require(APIKey(Self.known))
        #expect(key.id == Self.id)
        #expect(key.secret.revealText() == Self.known)
    }

    @Test("A key with one wrong character is refused")
    func everyCorruption() {
        let characters = Array(Self.known)
        let others = Base62.alphabet.map { Character(Unicode.Scalar($0)) } + ["_", "-", " ", "\u{0}", "é", "\u{301}"]
        for position in characters.indices {
            for other in others where other != characters[position] {
                var text = characters
                text[position] = other
                #expect(APIKey(String(text)) == nil, "\(String(text))")
            }
        }
    }

    @Test("A key with a missing, doubled or swapped character is refused")
    func slips() {
        let characters = Array(Self.known)
        for position in characters.indices {
            var shorter = characters
            shorter.remove(at: position)
            #expect(APIKey(String(shorter)) == nil)
            var longer = characters
            longer.insert(characters[position], at: position)
            #expect(APIKey(String(longer)) == nil)
            let next = position + 1
            guard next < characters.count, characters[position] != characters[next] else { continue }
            var swapped = characters
            swapped.swapAt(position, next)
            #expect(APIKey(String(swapped)) == nil)
        }
    }

    @Test(
        "A text of another form is refused even with a valid checksum",
        arguments: [
            "fgw_\(id)_\(secret)0", "fgw_\(id)_\(secret.dropLast())", "fgw_\(id)k_\(secret)",
            "fgw_\(id.dropLast())_\(secret)", "fgw_Abcdefghij_\(secret)", "fgw_abcde-ghij_\(secret)",
            "fgw_abcdéfghi_\(secret)", "fgw_\(id)_-\(secret.dropLast())", "fgw_\(id)_é\(secret.dropLast(2))",
            "FGW_\(id)_\(secret)", "fgx_\(id)_\(secret)", "_fgw_\(id)_\(secret)", " fgw_\(id)_\(secret)",
            "fgw_\(id)__\(secret)", "fgw__\(secret)", "fgw_\(id)_", "fgw_", "", "fgw",
        ]
    )
    func wrongForm(body: String) {
        #expect(APIKey.sample(body: body) == nil)
    }

    @Test("A text without a checksum, or with characters after it, is refused")
    func wrongChecksum() {
        for text in [
            "", "_", "___", "fgw_\(Self.id)_\(Self.secret)", "\(Self.known)_", "\(Self.known)\n", "\(Self.known)0",
        ] {
            #expect(APIKey(text) == nil, "\(text)")
        }
    }
}

@Suite("APIKey.Record")
struct APIKeyRecordTests {
    @Test(
        "A key with topic prefixes may address only topics that start with one of them",
        arguments: [
            ([], "anything", true), (["news-"], "news-sport", true), (["news-"], "news-", true),
            (["news-"], "news", false), (["news-"], "News-sport", false), (["news-"], "xnews-", false),
            (["a", "b"], "banana", true), (["a", "b"], "cherry", false), ([""], "anything", true),
            (["caf%C3%A9"], "café", false),
        ]
    )
    func topicPrefixes(prefixes: [String], topic: String, isAllowed: Bool) throws {
        let record = try APIKey.Record.sample(of: .generate(), topicPrefixes: prefixes)
        #expect(record.mayAddress(topic: topic) == isAllowed)
    }

    @Test(
        "A key is alive until it expires, unless it is revoked",
        arguments: [
            (nil, nil, 0, true), (10, nil, 9, true), (10, nil, 10, false), (10, nil, 11, false), (nil, 5, 0, false),
            (10, 5, 0, false), (-1, nil, 0, false),
        ] as [(Int?, Int?, Int, Bool)]
    )
    func life(expiry: Int?, revocation: Int?, now: Int, isAlive: Bool) throws {
        func moment(_ seconds: Int) -> Timestamp { Timestamp.sample.advanced(by: .seconds(seconds)) }
        let record = try APIKey.Record.sample(
            of: .generate(),
            expiresAt: expiry.map(moment),
            revokedAt: revocation.map(moment)
        )
        #expect(record.isAlive(at: moment(now)) == isAlive)
    }
}

@Suite("APIKey.Pepper")
struct KeyPepperTests {
    @Test("The digest is the HMAC-SHA256 of the whole key")
    func knownAnswer() throws {
        let pepper = APIKey.Pepper(Secret(bytes: Array(UInt8(0)..<32)))
        let key = try #require(APIKey("fgw_abcdefghij_Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Z_25P42x"))
        let digest = pepper.digest(of: key)
        #expect(Hex.text(digest) == "5806590a3c25703e5c9eabe8a440c32ffa7dbd7c07e836c4e146e6d41f242f45")
        #expect(pepper.matches(key.secret.revealBytes()[...], digest: digest))
    }

    @Test("Another key, another pepper or another digest does not match")
    func mismatches() {
        let key = APIKey.generate()
        let digest = APIKey.Pepper.sample.digest(of: key)
        #expect(APIKey.Pepper.sample.matches(key.secret.revealBytes()[...], digest: digest))
        #expect(!APIKey.Pepper.sample.matches(APIKey.generate().secret.revealBytes()[...], digest: digest))
        #expect(!APIKey.Pepper(.sample("other pepper")).matches(key.secret.revealBytes()[...], digest: digest))
        #expect(!APIKey.Pepper.sample.matches(key.secret.revealBytes()[...], digest: []))
        #expect(!APIKey.Pepper.sample.matches(key.secret.revealBytes()[...], digest: Array(digest.dropLast())))
        #expect(!APIKey.Pepper.sample.matches(key.secret.revealBytes()[...], digest: digest + [0]))
        for index in digest.indices {
            var other = digest
            other[index] ^= 1
            #expect(!APIKey.Pepper.sample.matches(key.secret.revealBytes()[...], digest: other))
        }
    }
}

extension APIKey {
    /// The key with this body and its checksum; `nil` if the body has a wrong form.
    static func sample(body: String) -> APIKey? {
        APIKey("\(body)_\(Base62.text(CRC32.checksum(Array(body.utf8)[...]), width: APIKey.checksumLength))")
    }
}
