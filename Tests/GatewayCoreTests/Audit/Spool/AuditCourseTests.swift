import Testing

@testable import GatewayCore

@Suite("AuditCourse")
struct AuditCourseTests {
    private let start = AuditChain(writer: 1)

    private func end(_ sequence: Int) -> AuditChain {
        AuditChain(writer: 1, sequence: sequence, hash: [UInt8(sequence)])
    }

    @Test("A store that takes everything is all there is")
    func direct() {
        var course = AuditCourse(chain: self.start)
        course.storeTook(self.end(3))
        #expect(course.isDirect)
        #expect((course.tail, course.stored, course.lag) == (self.end(3), self.end(3), 0))
        let isBack1 = course.returnIfCaughtUp()
        #expect(!isBack1)
    }

    @Test("The way back leads over a store that took all that the spool has")
    func detour() {
        var course = AuditCourse(chain: self.end(1))
        course.spoolTook(self.end(5))
        #expect(!course.isDirect && !course.isStoreWell && course.lag == 4)
        course.storeRefused()
        let isBack2 = course.returnIfCaughtUp()
        #expect(!isBack2)
        course.storeTook(self.end(4))
        #expect(course.isStoreWell && course.lag == 1)
        let isBack3 = course.returnIfCaughtUp()
        #expect(!isBack3)
        course.spoolTook(self.end(6))
        #expect(course.isStoreWell && course.lag == 2)
        course.storeTook(self.end(6))
        let isBack4 = course.returnIfCaughtUp()
        #expect(isBack4)
        #expect(course.isDirect && course.tail == self.end(6))
    }

    @Test("Even with nothing in the spool, a store that refused has to prove itself first")
    func proof() {
        var course = AuditCourse(chain: self.end(1))
        course.spoolTook(self.end(1))
        let isBack5 = course.returnIfCaughtUp()
        #expect(course.lag == 0 && !isBack5)
        course.storeTook(self.end(1))
        let isBack6 = course.returnIfCaughtUp()
        #expect(isBack6)
    }

    @Test("A spool that is given up takes the chain back to where the store is")
    func abandoned() {
        var course = AuditCourse(chain: self.end(1))
        course.spoolTook(self.end(9))
        course.storeTook(self.end(3))
        let lost = course.abandonSpool()
        #expect(lost == 6)
        #expect(course.isDirect && course.tail == self.end(3))
    }
}
