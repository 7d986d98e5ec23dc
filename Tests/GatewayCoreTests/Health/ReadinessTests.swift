import GatewayCore
import Testing

@Suite("Readiness")
struct ReadinessTests {
    @Test("What is held is not ready, whoever says so first")
    func held() {
        for isHeldFirst in [true, false] {
            let readiness = Readiness()
            if isHeldFirst { readiness.hold() }
            readiness.set(true)
            #expect(readiness.isReady != isHeldFirst)
            readiness.hold()
            #expect(!readiness.isReady)
            readiness.release()
            #expect(readiness.isReady)
        }
    }

    @Test("To be held no longer makes nothing ready that is not")
    func released() {
        let readiness = Readiness()
        readiness.hold()
        readiness.release()
        #expect(!readiness.isReady)
        readiness.set(true)
        readiness.set(false)
        #expect(!readiness.isReady)
    }
}
