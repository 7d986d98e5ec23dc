import GatewayCore
import GatewayTestKit
import Testing

@Suite("KeyPepper")
struct KeyPepperTests {
    @Test("The digest is the HMAC-SHA256 of the whole key")
    func knownAnswer() throws {
        let pepper = KeyPepper(Secret(bytes: Array(UInt8(0)..<32)))
        let key = try #require(APIKey("fgw_abcdefghij_Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Z_25P42x"))
        let digest = pepper.digest(of: key)
        #expect(Hex.text(digest) == "5806590a3c25703e5c9eabe8a440c32ffa7dbd7c07e836c4e146e6d41f242f45")
        #expect(pepper.matches(key.secret.revealBytes()[...], digest: digest))
    }

    @Test("Another key, another pepper or another digest does not match")
    func mismatches() {
        let key = APIKey.generate()
        let digest = KeyPepper.sample.digest(of: key)
        #expect(KeyPepper.sample.matches(key.secret.revealBytes()[...], digest: digest))
        #expect(!KeyPepper.sample.matches(APIKey.generate().secret.revealBytes()[...], digest: digest))
        #expect(!KeyPepper(.sample("other pepper")).matches(key.secret.revealBytes()[...], digest: digest))
        #expect(!KeyPepper.sample.matches(key.secret.revealBytes()[...], digest: []))
        #expect(!KeyPepper.sample.matches(key.secret.revealBytes()[...], digest: Array(digest.dropLast())))
        #expect(!KeyPepper.sample.matches(key.secret.revealBytes()[...], digest: digest + [0]))
        for index in digest.indices {
            var other = digest
            other[index] ^= 1
            #expect(!KeyPepper.sample.matches(key.secret.revealBytes()[...], digest: other))
        }
    }
}
