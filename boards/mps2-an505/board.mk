# SPDX-License-Identifier: Apache-2.0
# Arm MPS2+ with a Cortex-M33 (application note 505), in its secure state: LAN9118 Ethernet, CMSDK
# UARTs.
CPU := -mcpu=cortex-m33 -mthumb -mfloat-abi=soft
MEMORY := FLASH_ORIGIN=0x10000000 FLASH_SIZE=4M RAM_ORIGIN=0x38000000 RAM_SIZE=4M
DRIVERS := cortex_m fpgaio cmsdk_uart lan9118
DEFINES := CLOCK_HZ=20000000 FPGAIO_BASE=0x50302000 UART_BASE=0x50200000 LINE_BASE=0x50201000 LAN9118_BASE=0x52000000
QEMU := qemu-system-arm -M mps2-an505
NIC := -nic user,id=net0,model=lan9118
IMAGES += superloop_shared
